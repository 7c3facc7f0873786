import { HoldfastError } from "../model/errors.ts";

/**
 * The view that a transaction has of concurrent ones. SQLite has one writer, so both mean the same
 * there. On Postgres they are its isolation levels.
 */
export type Isolation = "serializable" | "readCommitted";

export function isIsolation(given: unknown): given is Isolation {
  return given === "serializable" || given === "readCommitted";
}

/** An operation's requirements on the transactions that may contain it. */
export interface IsolationMarks {
  /**
   * `serializable` (the default): the transaction behaves as if it ran by itself. If others
   * interfere, it is retried for up to 15 seconds. `readCommitted`: each statement sees the data
   * committed before it, so lock the rows that you decide by with `lockRow`. It is rarely retried.
   *
   * An operation that declares `serializable` itself is refused inside a `readCommitted` call. An
   * operation without a declaration runs in either.
   */
  readonly isolation?: Isolation | undefined;
  /**
   * Declares that a `readCommitted` operation may also run inside a serializable call, whose
   * snapshot may be older than its locks. It must read every row that it decides by with `lockRow`.
   * A unique index must reject rows that must not exist. The declaration also covers the operations
   * that it composes.
   */
  readonly snapshotSafe?: true | undefined;
}

/** A cover that `Fate.note` opened when a `snapshotSafe` operation started. */
export interface Cover {
  end(): void;
}

/**
 * True when an operation may run inside a call of that isolation.
 *
 * An operation that expects a new snapshot after its lock would decide by an old one inside a
 * serializable call. A fence that another transaction took in the meantime would still look valid.
 * That other transaction is `readCommitted`, so the server does not see the conflict.
 */
export function mayRunInside(isolation: Isolation, marks: IsolationMarks): boolean {
  return isolation === "serializable"
    ? marks.isolation !== "readCommitted" || marks.snapshotSafe === true
    : marks.isolation !== "serializable";
}

/** The error for a prepared read that cannot lock the rows it shows. */
export function readUnlocked(operation: string, call: string, isolation: Isolation): HoldfastError {
  return new HoldfastError(
    "ISOLATION_MISMATCH",
    `Operation "${operation}" cannot run inside "${call}": it reads many rows, which a write cannot lock, and they could change before the write commits. ` +
      "Call it before the write, and lock the rows that the write decides by inside it: " +
      "a session with `sessions.lock`, anything else by reading that one row.",
    { operation, call, isolation },
  );
}

export function isolationMismatch(
  operation: string,
  call: string,
  isolation: Isolation,
): HoldfastError {
  const details = { operation, call, isolation };
  if (isolation === "serializable")
    return new HoldfastError(
      "ISOLATION_MISMATCH",
      `Operation "${operation}" is readCommitted and cannot run inside "${call}", which is serializable: it would decide by an old snapshot. ` +
        'Give the outer call `{ isolation: "readCommitted" }`, and read the rows that it decides by with `lockRow`.',
      details,
    );
  return new HoldfastError(
    "ISOLATION_MISMATCH",
    `Operation "${operation}" is declared serializable and cannot run inside "${call}", which is readCommitted: the rows it reads could change before it writes. ` +
      'Make the outer call serializable, or define the operation with `isolation: "readCommitted"` and let it read with `lockRow`.',
    details,
  );
}
