import { monotonicMs } from "../../../host/timers.ts";
import { HoldfastError, isHoldfastError } from "../../../model/errors.ts";
import { Fate } from "../../../sql/fate.ts";
import { unansweredCalls } from "../../../sql/operation.ts";
import type { Afterwards, Change } from "../../../sql/operation.ts";
import type { Call } from "./call.ts";
import type { Connection } from "./connection.ts";
import { Busy, TransactionEnded, drive, isOfTransaction } from "./drive.ts";
import { isBusy, sqliteCode } from "./failures.ts";

/** The outcome of one call inside its transaction, reported to the caller after the flush. */
type Outcome = Decided & {
  /** Actions that the body requested for the time after its caller was answered. */
  readonly afterwards: readonly Afterwards[] | undefined;
};

type Decided =
  | {
      readonly kind: "committed";
      readonly value: unknown;
      /** Undefined when nothing was written; empty when the changes have no names. */
      readonly changes: readonly Change[] | undefined;
    }
  | { readonly kind: "rolledBack"; readonly value: unknown }
  | { readonly kind: "failed"; readonly error: unknown };

export interface BatchLimits {
  readonly batchCalls: number;
  readonly batchBytes: number;
  readonly batchMs: number;
}

/** Calls and their outcomes. */
export interface Ran {
  readonly calls: readonly Call[];
  readonly outcomes: readonly Outcome[];
}

export type BatchResult =
  | (Ran & {
      readonly kind: "committed";
      /** True when a limit ended the batch, rather than the end of the queue. */
      readonly isFull: boolean;
      /** False when the database is unchanged. */
      readonly hasChanged: boolean;
    })
  /** Another process holds a lock. Nothing happened, and the calls return to the queue. */
  | { readonly kind: "busy"; readonly calls: readonly Call[] }
  /** The whole transaction is lost. All its calls get the same error. */
  | {
      readonly kind: "lost";
      readonly calls: readonly Call[];
      readonly error: HoldfastError;
    }
  /** A call failed after it wrote, and only a savepoint could have undone that call separately. */
  | { readonly kind: "spoiled"; readonly calls: readonly Call[] }
  /**
   * A call made the whole transaction unable to commit. The calls must run one by one, or the call
   * was already alone.
   */
  | {
      readonly kind: "refused";
      readonly calls: readonly Call[];
      /** The call that was alone. */
      readonly guilty: Ran | undefined;
    };

/**
 * Runs one transaction of calls taken from `next`, up to the limits.
 *
 * Savepoints cost a third of a batch's time (docs/benchmarks.md), and nearly every call succeeds,
 * or fails before it writes. So a batch first runs without them. When a call fails after a write,
 * the batch is rolled back and its calls run again, each in a savepoint, so that only the failed
 * call is undone.
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
    let nowMs = startedMs;
    while (!isFull) {
      const call = next();
      if (call === undefined) break;
      calls.push(call);
      call.takenMs = nowMs;
      const outcome = savepoints
        ? runInSavepoint(connection, call)
        : runOptimistically(connection, call);
      nowMs = monotonicMs();
      call.ranMs = nowMs - call.takenMs;
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
        nowMs - startedMs >= limits.batchMs;
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

/**
 * Commits the transaction.
 * @returns the violated constraint, when SQLite checks it only here: a deferred foreign key.
 */
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
 * Handles a transaction that a call made unable to commit, or ended. SQLite does not always report
 * the call. Its refusal may also depend on earlier calls of the batch, which are undone by now. So
 * each call must run alone, in order. The outcome of a single call is known.
 */
function uncommitted(calls: readonly Call[], outcomes: readonly Outcome[]): BatchResult {
  return calls.length > 1
    ? { kind: "refused", calls, guilty: undefined }
    : { kind: "refused", calls: [], guilty: { calls, outcomes } };
}

/** Runs a call without a savepoint. Undefined when it left changes that must be undone. */
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

/**
 * True for a trigger's RAISE(ROLLBACK). It ends the transaction as a full disk does, but every time
 * the call runs.
 */
function isOfTheCall(cause: unknown): boolean {
  return isHoldfastError(cause) && cause.code === "CONSTRAINT_VIOLATED";
}

/**
 * The changes to report. A call that wrote nothing reports none; otherwise a subscriber that claims
 * at every hint would wake itself forever.
 */
function changesOf(connection: Connection, fate: Fate): readonly Change[] | undefined {
  return connection.traces === 0 ? undefined : fate.changes;
}

function assertInTransaction(connection: Connection): void {
  if (!connection.inTransaction) throw new TransactionEnded("ended unnoticed");
}

/**
 * Rolls back if a transaction is open. A failed COMMIT leaves its transaction open; a lost one has
 * nothing to roll back.
 */
function rollBackQuietly(connection: Connection): void {
  try {
    if (connection.inTransaction) connection.control("ROLLBACK");
  } catch {
    // The next BEGIN then fails and reports the cause.
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
  // The advice of these errors is better than "the batch was rolled back".
  if (isHoldfastError(cause) && tellingCodes.has(cause.code)) return cause;
  return new HoldfastError(
    "BATCH_ROLLED_BACK",
    "SQLite rolled back the transaction that contained this call; the call stored nothing. Retry it.",
    {},
    { cause },
  );
}

const lastingCodes: ReadonlySet<string> = new Set([
  "SCHEMA_NEWER",
  "MOVED_TO_POSTGRES",
  "DATABASE_DAMAGED",
]);

/** True when the failure does not pass by itself. */
export function isLasting({ code }: HoldfastError): boolean {
  return lastingCodes.has(code);
}
