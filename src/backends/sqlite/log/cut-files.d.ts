/** The open log, its database file, and what was last seen of both. */
export interface WatchedFiles {
  readonly fd: number;
  readonly database: string;
  /** Over shared memory. Not said to the compiler: before TypeScript 5.7 this type took no argument. */
  readonly seen: BigUint64Array;
}

export function watchedSizes(): BigUint64Array;
export function noteLog(files: WatchedFiles): boolean;
export function findHole(
  fd: number,
  known?: { readonly salts?: bigint; readonly frames?: number },
): number | undefined;
export function noteDatabase(files: WatchedFiles, sizeAtFirst: number): boolean;
