/** The connection that a lock needs; any driver's will do. */
export interface LockConnection {
  exec(text: string): unknown;
  close(): void;
}

export interface LockFile {
  /** Releases the lock and keeps the file. */
  close(): void;
  /** Removes the file while the lock is held, then releases the lock. */
  release(): void;
}

/**
 * Takes the lock of a name that one process may work on at a time. Returns undefined when another
 * process holds it. Only its owner can access the file. By default it does not wait for another's
 * lock.
 */
export function holdLockFile(
  path: string,
  open: (path: string) => LockConnection,
  options?: { readonly waitMs?: number },
): LockFile | undefined;
