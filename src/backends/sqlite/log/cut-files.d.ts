/** The open log, its database file, and the last known sizes of both. */
export interface WatchedFiles {
  readonly fd: number;
  readonly database: string;
  /**
   * An array over shared memory. Its type has no argument, because before TypeScript 5.7 it took
   * none.
   */
  readonly seen: BigUint64Array;
}

export function watchedSizes(): BigUint64Array;
export function noteLog(files: WatchedFiles): boolean;
export function findHole(
  fd: number,
  known?: { readonly salts?: bigint; readonly frames?: number },
): number | undefined;
export function noteDatabase(files: WatchedFiles, sizeAtFirst: number): boolean;
