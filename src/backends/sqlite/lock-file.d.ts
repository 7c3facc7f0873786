/** What a lock needs of a connection; any driver's will do. */
export interface LockConnection {
  exec(text: string): unknown;
  close(): void;
}

export interface LockFile {
  /** Gives the lock back and leaves the file. */
  close(): void;
  /** Removes the file while the lock is held, then gives it back. */
  release(): void;
}

/**
 * Holds the lock of a name that one process may work on at a time, or answers
 * undefined when another one does. The file is its owner's alone, and
 * another's lock is not waited for by default.
 */
export function holdLockFile(
  path: string,
  open: (path: string) => LockConnection,
  options?: { readonly waitMs?: number },
): LockFile | undefined;
