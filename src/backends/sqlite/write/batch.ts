import { monotonicMs } from "../../../host/timers.ts";
import { HoldfastError, isHoldfastError } from "../../../model/errors.ts";
import { Fate } from "../../../sql/fate.ts";
import { unansweredCalls } from "../../../sql/operation.ts";
import type { Afterwards, Change } from "../../../sql/operation.ts";
import type { Call } from "./call.ts";
import type { Connection } from "./connection.ts";
import { Busy, TransactionEnded, drive, isOfTransaction } from "./drive.ts";
import { isBusy, sqliteCode } from "./failures.ts";

/** How one call ended inside its transaction; told to the caller after the flush. */
type Outcome = Decided & {
  /** What the body asked to be done once its caller may be told. */
  readonly afterwards: readonly Afterwards[] | undefined;
};

type Decided =
  | {
      readonly kind: "committed";
      readonly value: unknown;
      /** Undefined when nothing was written; empty when it cannot be named. */
      readonly changes: readonly Change[] | undefined;
    }
  | { readonly kind: "rolledBack"; readonly value: unknown }
  | { readonly kind: "failed"; readonly error: unknown };

export interface BatchLimits {
  readonly batchCalls: number;
  readonly batchBytes: number;
  readonly batchMs: number;
}

/** Calls and how each of them ended. */
export interface Ran {
  readonly calls: readonly Call[];
  readonly outcomes: readonly Outcome[];
}

export type BatchResult =
  | (Ran & {
      readonly kind: "committed";
      /** True when a limit ended it, and not the end of the queue. */
      readonly isFull: boolean;
      /** False when the database is as it was before. */
      readonly hasChanged: boolean;
    })
  /** A lock is held elsewhere: nothing happened, the calls go back. */
  | { readonly kind: "busy"; readonly calls: readonly Call[] }
  /** The whole transaction is gone; all its calls are told the same. */
  | {
      readonly kind: "lost";
      readonly calls: readonly Call[];
      readonly error: HoldfastError;
    }
  /** A call failed after it wrote, and only a savepoint could have undone it alone. */
  | { readonly kind: "spoiled"; readonly calls: readonly Call[] }
  /** What a call did let no transaction with it commit: the calls are to be run alone, or it was alone. */
  | {
      readonly kind: "refused";
      readonly calls: readonly Call[];
      /** The one that was alone. */
      readonly guilty: Ran | undefined;
    };

/**
 * Runs one transaction of calls taken from `next`, up to the limits.
 *
 * Savepoints cost a third of the time of a batch (docs/benchmarks.md), and
 * nearly every call succeeds or fails before it writes. So a batch is first
 * run without them; when a call fails after a write the batch is rolled back
 * and its calls run again, each in a savepoint, so that only it is undone.
 */
export function runBatch(
  connection: Connection,
  next: () => Call | undefined,
  limits: BatchLimits,
  savepoints: boolean,
): BatchResult {
  const calls: Call[] = [];
  const outcomes: Outcome[] = [];
  const startedMs = monotonicMs();
  let isFull = false;
  connection.resetCounts();
  try {
    connection.control("BEGIN IMMEDIATE");
    while (!isFull) {
      const call = next();
      if (call === undefined) break;
      calls.push(call);
      const outcome = savepoints
        ? runInSavepoint(connection, call)
        : runOptimistically(connection, call);
      if (outcome === undefined) {
        connection.control("ROLLBACK");
        return { kind: "spoiled", calls };
      }
      outcomes.push(outcome);
      if (outcome.kind !== "committed" && !connection.inTransaction)
        return uncommitted(calls, outcomes);
      isFull =
        calls.length >= limits.batchCalls ||
        connection.boundBytes >= limits.batchBytes ||
        monotonicMs() - startedMs >= limits.batchMs;
    }
    const error = commit(connection);
    if (error !== undefined)
      return uncommitted(
        calls,
        outcomes.map(({ afterwards }) => ({
          kind: "failed",
          error,
          afterwards,
        })),
      );
  } catch (error) {
    rollBackQuietly(connection);
    if (error instanceof Busy || isBusy(error)) return { kind: "busy", calls };
    return { kind: "lost", calls, error: lostBatch(connection, error) };
  }
  const hasChanged = connection.hasChanged();
  return { kind: "committed", calls, outcomes, isFull, hasChanged };
}

/** @returns the constraint that was violated, when SQLite looks at it only here: a deferred foreign key. */
function commit(connection: Connection): HoldfastError | undefined {
  assertInTransaction(connection);
  try {
    connection.control("COMMIT");
    return undefined;
  } catch (error) {
    if (sqliteCode(error) !== "CONSTRAINT") throw error;
    rollBackQuietly(connection);
    return connection.failure(error);
  }
}

/**
 * What a call did let its transaction not commit, or ended it. SQLite does not
 * always say which call that was, and it may have been refused for what those
 * before it did, which is undone by now: each is to be run alone, in order. Of
 * a single one the outcome is known.
 */
function uncommitted(calls: readonly Call[], outcomes: readonly Outcome[]): BatchResult {
  return calls.length > 1
    ? { kind: "refused", calls, guilty: undefined }
    : { kind: "refused", calls: [], guilty: { calls, outcomes } };
}

/** Undefined when the call left a trace that must be undone. */
function runOptimistically(connection: Connection, call: Call): Outcome | undefined {
  const outcome = runCall(connection, call);
  const traceless =
    outcome.kind === "committed" || connection.traces === 0 || !connection.inTransaction;
  return traceless ? outcome : undefined;
}

function runInSavepoint(connection: Connection, call: Call): Outcome {
  assertInTransaction(connection);
  connection.control("SAVEPOINT holdfast_call");
  const outcome = runCall(connection, call);
  if (outcome.kind !== "committed") {
    if (!connection.inTransaction) return outcome;
    connection.control("ROLLBACK TO holdfast_call");
  }
  connection.control("RELEASE holdfast_call");
  return outcome;
}

function runCall(connection: Connection, call: Call): Outcome {
  const { name, change, start, isolation, isCovered, owner } = call.body;
  const fate = new Fate(name, change, isolation, isCovered, owner);
  connection.traces = 0;
  try {
    const unanswered = unansweredCalls();
    const value = drive(start(), connection, fate);
    fate.ranSince(unanswered);
    const { afterwards } = fate;
    if (fate.verdict(value) === "rollback") return { kind: "rolledBack", value, afterwards };
    const changes = changesOf(connection, fate);
    return { kind: "committed", value, changes, afterwards };
  } catch (error) {
    const { afterwards } = fate;
    if (!isOfTransaction(error)) return { kind: "failed", error, afterwards };
    if (!isOfTheCall(error.cause)) throw error;
    return { kind: "failed", error: error.cause, afterwards };
  }
}

/** A trigger's RAISE(ROLLBACK) ends the transaction as a full disk does, but each time that the call is run. */
function isOfTheCall(cause: unknown): boolean {
  return isHoldfastError(cause) && cause.code === "CONSTRAINT_VIOLATED";
}

/** A call that wrote nothing tells nobody, or a subscriber who claims at every hint would wake itself for ever. */
function changesOf(connection: Connection, fate: Fate): readonly Change[] | undefined {
  return connection.traces === 0 ? undefined : fate.changes;
}

function assertInTransaction(connection: Connection): void {
  if (!connection.inTransaction) throw new TransactionEnded("ended unnoticed");
}

/** A failed COMMIT leaves its transaction open; a lost one has nothing to roll back. */
function rollBackQuietly(connection: Connection): void {
  try {
    if (connection.inTransaction) connection.control("ROLLBACK");
  } catch {
    // The next BEGIN fails then, and says why.
  }
}

const tellingCodes = new Set([
  "DISK_FULL",
  "DISK_FAILED",
  "SCHEMA_NEWER",
  "MOVED_TO_POSTGRES",
  "DATABASE_DAMAGED",
]);

function lostBatch(connection: Connection, error: unknown): HoldfastError {
  const cause = error instanceof TransactionEnded ? error.cause : connection.failure(error);
  // These say what to do better than "the batch was rolled back" would.
  if (isHoldfastError(cause) && tellingCodes.has(cause.code)) return cause;
  return new HoldfastError(
    "BATCH_ROLLED_BACK",
    "SQLite gave up the transaction that carried this call; nothing of it was stored. Try again.",
    {},
    { cause },
  );
}

const lastingCodes: ReadonlySet<string> = new Set([
  "SCHEMA_NEWER",
  "MOVED_TO_POSTGRES",
  "DATABASE_DAMAGED",
]);

/** Whether it does not pass by itself. */
export function isLasting({ code }: HoldfastError): boolean {
  return lastingCodes.has(code);
}
