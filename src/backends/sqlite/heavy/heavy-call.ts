import type { WaitOptions } from "../../../sql/database.ts";

/** How far it has come, in the unit that the method names. */
export interface Progress {
  readonly done: number;
  readonly total: number;
}

export interface HeavyOptions extends WaitOptions {
  /** Called now and then, and at the end with `done` equal to `total`. What it throws ends the call. */
  readonly onProgress?: ((progress: Progress) => void) | undefined;
}

/** One call under way: its signal aborts with the error that ends it. */
export interface HeavyCall {
  readonly signal: AbortSignal;
  readonly onProgress: (progress: Progress) => void;
}

/** The file that is open: where it was, and which one it is. */
export interface OpenFile {
  readonly path: string;
  /** Device and inode, as `identityOf` tells them. */
  readonly identity: string;
}
