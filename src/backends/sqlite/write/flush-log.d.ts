/** Faults that tests inject: a slower disk, or one that fails after n flushes. */
export interface FlushFaults {
  readonly delayMs?: number;
  failAfter?: number;
}

import type { WatchedFiles } from "../log/cut-files.js";

/** The open log, and the database file it belongs to. */
export interface OpenLog extends WatchedFiles {
  readonly path: string;
  readonly dev: bigint;
  readonly ino: bigint;
  /** Device and inode of the database file. */
  readonly beside: { readonly dev: bigint; readonly ino: bigint };
}

export function flushLog(log: OpenLog, faults: FlushFaults | undefined): void;
/** Checks that the file and its log are the ones that were opened. @throws when they are not. */
export function assertInPlace(log: OpenLog): { readonly size: bigint };
