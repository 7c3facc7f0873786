import { HoldfastError, isHoldfastError } from "../../../model/errors.ts";
import type { Tx } from "../../../sql/operation.ts";
import type { Clock } from "../../../model/time/clock.ts";
import type { RolledBack } from "../../run/run-host.ts";
import type { BodyTimes } from "../../run/journal.ts";
import { isLosing, isPassing } from "../../failures.ts";

/**
 * Tracks the progress of one attempt of a user's transaction, which decides who owns an error.
 * The user's own error is the outcome of the transaction. A database error counts as a failed
 * attempt once the body has begun, since the body may cause it. Every other error is about the
 * run's log, and the appends judge it.
 */
export class BodyPlace {
  isInBody = false;
  readonly #clock: Clock;
  #began: number | undefined;
  #ended: number | undefined;
  /** The lost answer to a commit. */
  #unknown: HoldfastError | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Runs a body. If the answer to an earlier commit was lost, starting again proves that nothing was stored. */
  *during(body: () => Tx<unknown>): Tx<unknown> {
    if (this.#unknown !== undefined) throw notCommitted(this.#unknown);
    this.#began = this.#clock.now();
    this.#ended = undefined;
    this.isInBody = true;
    try {
      const value = yield* body();
      this.isInBody = false;
      return value;
    } finally {
      this.#ended = this.#clock.now();
    }
  }

  /** The way in which an error ends the attempt; undefined if the error is about the log and does not end it. */
  rolledBackBy(thrown: unknown): RolledBack | undefined {
    const isOfTheDatabase = isHoldfastError(thrown) && ofTheDatabase.has(thrown.code);
    const rolledBack: RolledBack = { thrown, isOfTheDatabase, ran: this.#times };
    // The process was set up wrongly. Its worker stops, and the run resumes in another one.
    if (isHoldfastError(thrown) && thrown.code === "PREPARED_STATEMENT_LOST") return undefined;
    if (this.isInBody && !isOfTheDatabase) return rolledBack;
    if (!isHoldfastError(thrown)) return rolledBack;
    if (isLosing(thrown) || aboutTheLog.has(thrown.code)) return undefined;
    if (thrown.code === "OUTCOME_UNKNOWN") {
      if (this.#began !== undefined) this.#unknown = thrown;
      return undefined;
    }
    if (isOfTheDatabase && this.#began !== undefined) return rolledBack;
    return isPassing(thrown) ? undefined : rolledBack;
  }

  /** The body's last run. A body that the database left in the middle ends now. */
  get #times(): BodyTimes | undefined {
    const began = this.#began;
    return began === undefined ? undefined : { began, ended: this.#ended ?? this.#clock.now() };
  }
}

/** Refusals of the event that records the transaction, when the lock ended during the body. */
const aboutTheLog: ReadonlySet<string> = new Set([
  "VERSION_CONFLICT",
  "EXECUTION_PAUSED",
  "EXECUTION_CANCELLING",
]);

/** Codes of a database that could not do its part this time. */
const ofTheDatabase: ReadonlySet<string> = new Set([
  "QUEUE_FULL",
  "DATABASE_BUSY",
  "READ_ONLY",
  "DISK_FULL",
  "DISK_FAILED",
  "BATCH_ROLLED_BACK",
  "STATEMENT_INTERRUPTED",
  "TRANSACTION_CONFLICT",
  "CONNECTION_LOST",
  "OUTCOME_UNKNOWN",
  "DATABASE_UNREACHABLE",
  "MOVED_TO_POSTGRES",
]);

function notCommitted(cause: HoldfastError): HoldfastError {
  return new HoldfastError(
    "BATCH_ROLLED_BACK",
    "The answer to the commit of this transaction was lost, and it stored nothing. Retry it.",
    {},
    { cause },
  );
}
