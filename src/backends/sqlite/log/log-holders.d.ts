/** A process that holds SQLite's write lock. */
export interface LogWriter {
  readonly pid: number;
  readonly command: string | undefined;
  /** By a signal or a debugger; that its container is paused is not told. */
  readonly isStopped: boolean;
}

/** The process that writes to a database at this moment, other than this one, where the system tells. */
export function logWriter(path: string): LogWriter | undefined;
