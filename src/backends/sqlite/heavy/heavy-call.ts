import type { WaitOptions } from "../../../sql/database.ts";

/** Progress in the unit that the method names. */
export interface Progress {
  readonly done: number;
  readonly total: number;
}

export interface HeavyOptions extends WaitOptions {
  /**
   * Called now and then, and at the end with `done` equal to `total`. An error that it throws ends
   * the call with `OPTION_INVALID`, and is its cause.
   */
  readonly onProgress?: ((progress: Progress) => void) | undefined;
}

/** One call in progress. Its signal aborts with the error that ends it. */
export interface HeavyCall {
  readonly signal: AbortSignal;
  readonly onProgress: (progress: Progress) => void;
}

/** The open file: its original path, and its identity. */
export interface OpenFile {
  readonly path: string;
  /** Device and inode, as returned by `identityOf`. */
  readonly identity: string;
}
