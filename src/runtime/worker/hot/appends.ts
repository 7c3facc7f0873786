import { HoldfastError, isHoldfastError } from "../../../model/errors.ts";
import { isControlKind } from "../../../model/execution/event.ts";
import type { Fence } from "../../../stores/execution/checks.ts";
import { startedBody, type Tx } from "../../../sql/operation.ts";
import { appendEvents } from "../../../stores/execution/log/append.ts";
import type { AppendOutcome } from "../../../stores/execution/log/append-to.ts";
import { recordTransaction } from "../../../stores/execution/log/transaction.ts";
import type { Entry } from "../../run/journal.ts";
import type { AppendDraft, Appended, TransactionDraft } from "../../run/run-host.ts";
import { broke, cannotBeRecorded } from "../../run/broken.ts";
import type { RunState } from "../../run/run-state.ts";
import type { RuntimeContext } from "../../runtime-context.ts";
import { pauseBefore } from "../../pauses.ts";
import { insideStep } from "../../run/step-context.ts";
import { isLosing, isOfTheCodec, isPassing, recorded } from "../../failures.ts";
import { eventsOnlyOf } from "./history.ts";

/** What becomes of a run whose append was refused. */
type AfterRefusal =
  | { readonly kind: "again"; readonly version: number }
  /** The run is not this worker's any more, or nothing can be written. */
  | { readonly kind: "drop"; readonly reason: HoldfastError }
  /** What it wants to append can never be: a bug of ours, or a value that does not fit. */
  | { readonly kind: "park"; readonly reason: HoldfastError }
  /** It was paused before it could begin its next pass: it does when it is resumed. */
  | { readonly kind: "leave"; readonly reason: HoldfastError };

/** Appends of runs: each is repeated until it is known what came of it. */
export class Appends {
  readonly #context: RuntimeContext;
  readonly #fence: Fence;
  readonly #signal: AbortSignal;
  readonly #operation: ReturnType<typeof appendEvents>;

  constructor(context: RuntimeContext, fence: Fence, signal: AbortSignal) {
    this.#context = context;
    this.#operation = appendEvents(context.store);
    this.#fence = fence;
    this.#signal = signal;
  }

  /** Undefined when the run could not append, and has been told why. */
  append(run: RunState, draft: AppendDraft): Promise<Appended | undefined> {
    const { clock } = this.#context;
    const at = clock.now();
    const { version } = run;
    // Nearly all are taken at once; a step has no more than these two promises.
    return this.#send(run, draft, version, at).then(
      (outcome) => moved(run, appended(version, outcome)),
      (error: unknown) => {
        let tried = version;
        let isAwake = false;
        return this.#until(run, { version, error }, (next) => {
          // Decided once for a version: what may have been written there is repeated as it was.
          if (next !== tried) isAwake = isToBeCancelled(run);
          tried = next;
          return isAwake
            ? this.#writeAwake(run, draft, next, at)
            : this.#write(run, draft, next, at);
        });
      },
    );
  }

  /** Behind its cancellation a run must not rest: nothing would wake it again. */
  async #writeAwake(
    run: RunState,
    draft: AppendDraft,
    version: number,
    at: number,
  ): Promise<Appended> {
    const events = draft.events.filter(({ kind }) => kind !== "waiting");
    const done =
      events.length === 0
        ? appended(version, { at, nextVersion: version })
        : await this.#write(run, { ...draft, events }, version, at);
    return { ...done, isAwake: true };
  }

  async #write(run: RunState, draft: AppendDraft, version: number, at: number): Promise<Appended> {
    return appended(version, await this.#send(run, draft, version, at));
  }

  #send(
    { id, locked: { key } }: RunState,
    { events, children, starts }: AppendDraft,
    version: number,
    at: number,
  ): Promise<AppendOutcome> {
    const input = { id, key, version, at, events, fence: this.#fence };
    return this.#context.database.write(
      this.#operation,
      children === undefined && starts === undefined
        ? input
        : {
            ...input,
            ...(children && { children }),
            ...(starts && { starts }),
          },
    );
  }

  /**
   * A user's body and the event that records it, in one transaction. What the
   * body throws rolls it back, and is recorded in another.
   */
  async transact(
    run: RunState,
    draft: TransactionDraft,
  ): Promise<(Appended & { readonly entry: Entry }) | undefined> {
    const { database, store, clock } = this.#context;
    const at = clock.now();
    const { name, call, seen, body } = draft;
    let failure: { readonly error: unknown } | undefined;
    let isInBody = false;
    const watched = function* (): Tx<unknown> {
      isInBody = true;
      const inside = { id: run.id, step: name };
      const value = yield* insideStep(inside, () => startedBody(name, body));
      isInBody = false;
      return value;
    };
    const done = await this.#until(run, { version: run.version }, async (version) => {
      const input = {
        id: run.id,
        version,
        at,
        name,
        call,
        seen,
        fence: this.#fence,
      };
      try {
        const outcome = await database.write(`transaction ${name}`, () => {
          // Each time it is run: the database may do so again, and what refuses it then is not the user's.
          isInBody = false;
          return recordTransaction(store, input, watched);
        });
        return { ...appended(version, outcome), entry: outcome.entry };
      } catch (error) {
        if (isInBody ? isOfTheDatabase(error) : isOfTheLog(error)) throw error;
        failure = { error };
        return undefined;
      }
    });
    if (done !== undefined || failure === undefined) return done;
    return this.#failTransaction(run, draft, failure.error);
  }

  async #failTransaction(
    run: RunState,
    { name, call, seen }: TransactionDraft,
    thrown: unknown,
  ): Promise<(Appended & { readonly entry: Entry }) | undefined> {
    const { values } = this.#context.store;
    let entry: Entry;
    try {
      // It says nothing about the transaction.
      if (isOfTheCodec(thrown)) throw thrown;
      entry = {
        kind: "transactionFinished",
        name,
        inputHash: null,
        outcome: "failed",
        value: recorded(thrown, { step: name, attempt: 1 }, (error) => values.value(error)),
        call,
      };
    } catch (error) {
      run.isAppending = false;
      broke(run, error);
      return undefined;
    }
    const failed = await this.append(run, { events: [{ ...entry, seen }] });
    return failed && { ...failed, entry };
  }

  /** Writes until it is known what came of it, from the first time on or after a refusal. */
  async #until<T extends Appended>(
    run: RunState,
    begun: { readonly version: number; readonly error?: unknown },
    write: (version: number) => Promise<T | undefined>,
  ): Promise<T | undefined> {
    let { version } = begun;
    let refused: { readonly error: unknown } | undefined =
      "error" in begun ? { error: begun.error } : undefined;
    for (let failures = 0; ; failures += 1) {
      if (refused !== undefined) {
        const next = await this.#afterRefusal(run, refused.error, version);
        if (next.kind !== "again") return this.#giveUp(run, next);
        if (next.version === version)
          await pauseBefore(this.#context.clock, failures, this.#signal);
        version = next.version;
      }
      try {
        return moved(run, await write(version));
      } catch (error) {
        refused = { error };
      }
    }
  }

  #giveUp(run: RunState, { kind, reason }: Exclude<AfterRefusal, { kind: "again" }>): undefined {
    run.isAppending = false;
    if (kind === "leave") {
      run.leaving ??= "paused";
      run.again();
    } else if (kind === "park" && canBeSetAside(run, reason)) {
      run.poison ??= reason;
      run.again();
    } else run.host.lost(run, reason);
    return undefined;
  }

  async #afterRefusal(run: RunState, error: unknown, version: number): Promise<AfterRefusal> {
    if (!isHoldfastError(error)) return { kind: "park", reason: cannotBeRecorded(run, error) };
    if (run.isOver || isLosing(error)) return { kind: "drop", reason: error };
    if (error.code === "VERSION_CONFLICT")
      return (
        (await this.#behindControl(run, version)) ?? {
          kind: "drop",
          reason: error,
        }
      );
    if (error.code === "EXECUTION_PAUSED") return { kind: "leave", reason: error };
    // Its lock ended with its wait, which was answered late: who locks it next tells its code.
    if (error.code === "EXECUTION_CANCELLING" && goesOn(run))
      return { kind: "drop", reason: error };
    if (!isPassing(error)) return { kind: "park", reason: error };
    if (this.#signal.aborted) return { kind: "drop", reason: error };
    return { kind: "again", version };
  }

  /**
   * Where to append when others wrote to the log meanwhile, if all of it was
   * about the run and nothing of it: a pause, a cancellation. Somebody else's
   * history means that the run is lost.
   */
  async #behindControl(run: RunState, version: number): Promise<AfterRefusal | undefined> {
    try {
      const items = await eventsOnlyOf(
        this.#context,
        run.id,
        version,
        (kind) => isControlKind(kind) && kind !== "locked",
      );
      const last = items?.at(-1);
      if (items === undefined || last === undefined) return undefined;
      // It may not have been known here when the hint of it came.
      for (const { event, at } of items)
        if (event.kind === "cancellationRequested") {
          const { cause, reason } = event;
          run.cancellation ??= { requestedAt: at, cause, reason };
        }
      run.host.interrupted(run);
      return { kind: "again", version: last.version + 1 };
    } catch (error) {
      return isPassing(error) ? { kind: "again", version } : undefined;
    }
  }
}

/** Codes by which a database says that it could not do its part this time. */
const ofTheDatabase: ReadonlySet<string> = new Set([
  "QUEUE_FULL",
  "DATABASE_BUSY",
  "READ_ONLY",
  "DISK_FULL",
  "DISK_FAILED",
  "BATCH_ROLLED_BACK",
  "TRANSACTION_CONFLICT",
  "CONNECTION_LOST",
  "OUTCOME_UNKNOWN",
  "DATABASE_UNREACHABLE",
  "MOVED_TO_POSTGRES",
]);

/** What a user's body throws is its own, also when it has written to logs: only the database speaks through it. */
function isOfTheDatabase(error: unknown): boolean {
  return isHoldfastError(error) && ofTheDatabase.has(error.code);
}

/** True for what says something about the run's log or the database; all else the user's body brought about. */
function isOfTheLog(error: unknown): boolean {
  if (!isHoldfastError(error)) return false;
  return isPassing(error) || error.code === "VERSION_CONFLICT" || isLosing(error);
}

/** Neither has its code ended, nor has anything gone wrong with it. */
function goesOn({ settled, poison }: RunState): boolean {
  return settled === undefined && poison === undefined;
}

/** One that could not be parked, since it was cancelled just then, ends cancelled instead; that is tried once. */
function canBeSetAside({ poison, told }: RunState, { code }: HoldfastError): boolean {
  if (poison === undefined) return true;
  return code === "EXECUTION_CANCELLING" && !told.has("unended");
}

/** It has been asked to end, and its code has not heard of it. */
function isToBeCancelled({ cancellation, cancelledAt, settled }: RunState): boolean {
  return cancellation !== null && cancelledAt === undefined && settled === undefined;
}

function moved<T extends Appended>(run: RunState, done: T | undefined): T | undefined {
  if (done !== undefined) run.version = done.nextVersion;
  return done;
}

const noneScheduled: Appended["scheduled"] = new Map();

function appended(version: number, outcome: AppendOutcome): Appended {
  const { at, nextVersion, responses = 0, scheduled } = outcome;
  return {
    version,
    at,
    nextVersion,
    responses,
    scheduled:
      scheduled === undefined
        ? noneScheduled
        : new Map(scheduled.map((one) => [one.version, one.outcome])),
  };
}
