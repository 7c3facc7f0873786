/** What a lock needs of a connection; any driver's will do. */
export interface LockConnection {
  exec(text: string): unknown;
  close(): void;
}

/**
 * Holds the lock of a name that one process may work on at a time, or answers
 * undefined when another one does.
 */
export function holdLockFile(
  path: string,
  open: (path: string) => LockConnection,
): { release(): void } | undefined;
