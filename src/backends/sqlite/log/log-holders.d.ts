/** A process that holds SQLite's write lock. */
export interface LogWriter {
  readonly pid: number;
  readonly command: string | undefined;
  /** By a signal or a debugger; that its container is paused is not told. */
  readonly isStopped: boolean;
}

/** The processes that read a snapshot of the log at this moment, each as `4711 (sqlite3)`, where the system tells. */
export function logReaders(path: string): readonly string[];

/** The process that writes to a database at this moment, other than this one, where the system tells. */
export function logWriter(path: string): LogWriter | undefined;
