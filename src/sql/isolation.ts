import { HoldfastError } from "../model/errors.ts";

/**
 * What a transaction sees of others that run beside it. SQLite has one writer,
 * so both mean the same there; on Postgres they are its isolation levels.
 */
export type Isolation = "serializable" | "readCommitted";

export function isIsolation(given: unknown): given is Isolation {
  return given === "serializable" || given === "readCommitted";
}

/** What an operation says of the transactions that it may be a part of. */
export interface IsolationMarks {
  /**
   * `serializable` (the default): the transaction happens as if it were alone.
   * When others got in its way it is run again, for up to 15 seconds.
   * `readCommitted`: each statement sees what was committed before it, so lock
   * the rows that you decide by with `lockRow`; rarely run again.
   *
   * An operation that says `serializable` itself is refused inside a call that
   * is `readCommitted`; one that says nothing goes along.
   */
  readonly isolation?: Isolation | undefined;
  /**
   * Says of a `readCommitted` operation that it may also run inside a
   * serializable call, whose snapshot may be older than its locks: every row
   * that it decides by is read with `lockRow`, and what must not be there is
   * kept out by a unique index. It answers for the operations that it composes.
   */
  readonly snapshotSafe?: true | undefined;
}

/** Ends what `Fate.note` began when an operation that is `snapshotSafe` was entered. */
export interface Cover {
  end(): void;
}

/**
 * Whether an operation may run inside a call of that isolation.
 *
 * Inside a serializable call an operation that counts on a new snapshot after
 * its lock would decide by an old one: a fence that was taken meanwhile would
 * still look good, and who took it, being `readCommitted`, is invisible to the
 * server's search for conflicts.
 */
export function mayRunInside(isolation: Isolation, marks: IsolationMarks): boolean {
  return isolation === "serializable"
    ? marks.isolation !== "readCommitted" || marks.snapshotSafe === true
    : marks.isolation !== "serializable";
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
        'Give the outer call `{ isolation: "readCommitted" }`, and let it read what it decides by with `lockRow`.',
      details,
    );
  return new HoldfastError(
    "ISOLATION_MISMATCH",
    `Operation "${operation}" says that it is serializable and cannot run inside "${call}", which is readCommitted: what it reads could change before it writes. ` +
      'Make the outer call serializable, or define the operation with `isolation: "readCommitted"` and let it read with `lockRow`.',
    details,
  );
}
