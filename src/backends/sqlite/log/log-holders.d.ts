/** A process that holds SQLite's write lock. */
export interface LogWriter {
  readonly pid: number;
  readonly command: string | undefined;
  /** True when stopped by a signal or a debugger. A paused container does not show here. */
  readonly isStopped: boolean;
}

/**
 * The processes that read a snapshot of the log now, each as `4711 (sqlite3)`, where the system
 * reports them.
 */
export function logReaders(path: string): readonly string[];

/** The process that writes to a database now, other than this one, where the system reports it. */
export function logWriter(path: string): LogWriter | undefined;
