export interface LogHeader {
  readonly pageBytes: number;
  readonly frameBytes: number;
  /** Both salts as one number. Every generation of the log has its own. */
  readonly salts: bigint;
  /** True when its checksum is correct. */
  readonly isValid: boolean;
}

/** The cut-off part of a log. Frames count from 1. */
export interface LogCut {
  /** Frames that SQLite keeps: up to the last commit before the bad one. */
  readonly kept: number;
  readonly bad: number;
  /** Frames that SQLite leaves behind, up to the last whole commit. */
  readonly frames: number;
  readonly commits: number;
}

export function readLogHeader(fd: number): LogHeader | undefined;
export function readGeneration(fd: number):
  | {
      readonly frameBytes: number;
      readonly generation: bigint;
      readonly salts: bigint;
    }
  | undefined;
export function isFrameWhole(fd: number, number: number): boolean;
export function findCut(fd: number): LogCut | undefined;
export function loggedPages(fd: number): {
  readonly pages: ReadonlySet<number>;
  readonly databasePages: number | undefined;
  readonly pageBytes?: number;
};
