export interface LogHeader {
  readonly pageBytes: number;
  readonly frameBytes: number;
  /** Both salts as one number; every generation of the log has its own. */
  readonly salts: bigint;
  /** Whether its checksum is right. */
  readonly isValid: boolean;
}

/** Frames count from 1. */
export interface LogCut {
  /** Frames that SQLite keeps: up to the last commit before the bad one. */
  readonly kept: number;
  readonly bad: number;
  /** What it leaves behind, up to the last commit that is whole. */
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
