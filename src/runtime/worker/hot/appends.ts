import { HoldfastError, isHoldfastError } from "../../../model/errors.ts";
import { isControlKind } from "../../../model/execution/event.ts";
import { showsProgress } from "../../../model/execution/history-event.ts";
import type { Fence } from "../../../stores/execution/checks.ts";
import type { Tx } from "../../../sql/operation.ts";
import { startedBody } from "../../../sql/body.ts";
import { appendEvents } from "../../../stores/execution/log/append.ts";
import type { AppendOutcome } from "../../../stores/execution/log/append-to.ts";
import {
  recordTransaction,
  type TransactionOutcome,
} from "../../../stores/execution/log/transaction.ts";
import type { Entry } from "../../run/journal.ts";
import type {
  AppendDraft,
  Appended,
  RolledBack,
  TimeoutRefused,
  TransactionDraft,
} from "../../run/run-host.ts";
import { cannotBeRecorded } from "../../run/broken.ts";
import { heldBack, isToBeCancelled } from "../../run/cancellation.ts";
import type { RunState } from "../../run/run-state.ts";
import type { RuntimeContext } from "../../runtime-context.ts";
import type { AloneRuns } from "../alone.ts";
import type { WorkerParts } from "../worker-parts.ts";
import { pauseBefore } from "../../pauses.ts";
import { insideStep } from "../../run/step-context.ts";
import { isLosing, isPassing } from "../../failures.ts";
import { BodyPlace } from "./body-place.ts";
import { eventsOnlyOf } from "./history.ts";
import { reportAppend } from "./report-append.ts";

/** The next step for a run whose append was refused. */
type AfterRefusal =
  | { readonly kind: "again"; readonly version: number }
  /** The run no longer belongs to this worker, or nothing can be written. */
  | { readonly kind: "drop"; readonly reason: HoldfastError }
  /** The append can never succeed: a bug in this package, or a value that does not fit. */
  | { readonly kind: "park"; readonly reason: HoldfastError }
  /** The run was paused before its next pass could begin. The pass begins when the run is resumed. */
  | { readonly kind: "leave"; readonly reason: HoldfastError };

/** Appends of runs. Each append is repeated until its outcome is known. */
export class Appends {
  readonly #context: RuntimeContext;
  readonly #fence: Fence;
  readonly #signal: AbortSignal;
  readonly #operation: ReturnType<typeof appendEvents>;
  readonly #alone: AloneRuns;

  constructor({ context, holder: fence, signal, alone }: WorkerParts) {
    this.#context = context;
    this.#alone = alone;
    this.#operation = appendEvents(context.store);
    this.#fence = fence;
    this.#signal = signal;
  }

  /** Undefined when the run could not append. The run has then received the reason. */
  append(run: RunState, draft: AppendDraft): Promise<Appended | TimeoutRefused | undefined> {
    const { version } = run;
    const hasProgress = draft.events.some(showsProgress);
    // Nearly all appends succeed at once; a step has no more than these two promises.
    return this.#send(run, draft, version).then(
      (outcome) => {
        reportAppend(this.#context.reports, run, draft, outcome);
        return this.#moved(run, appended(version, outcome), hasProgress);
      },
      (error: unknown) => timeoutRefused(error) ?? this.#appendAgain(run, draft, error),
    );
  }

  async #appendAgain(
    run: RunState,
    draft: AppendDraft,
    error: unknown,
  ): Promise<Appended | TimeoutRefused | undefined> {
    const { version } = run;
    let tried = version;
    let isAwake = false;
    let sent = draft;
    let refused: TimeoutRefused | undefined;
    const hasProgress = draft.events.some(showsProgress);
    const done = await this.#until(run, { version, error, hasProgress }, async (next) => {
      // Decided once per version: an append that may have been written there is repeated unchanged.
      if (next !== tried) {
        isAwake = isToBeCancelled(run) && run.settled === undefined;
        sent = heldBack(run, draft);
      }
      tried = next;
      try {
        return await (isAwake ? this.#writeAwake(run, sent, next) : this.#write(run, sent, next));
      } catch (failure) {
        refused = timeoutRefused(failure);
        if (refused === undefined) throw failure;
        run.version = next;
        return undefined;
      }
    });
    return done ?? refused;
  }

  /** Appends without `waiting`. A run must not rest after its cancellation: nothing would wake it again. */
  async #writeAwake(run: RunState, draft: AppendDraft, version: number): Promise<Appended> {
    const events = draft.events.filter(({ kind }) => kind !== "waiting");
    const done =
      events.length === 0
        ? appended(version, { at: draft.at, nextVersion: version })
        : await this.#write(run, { ...draft, events }, version);
    return { ...done, isAwake: true };
  }

  async #write(run: RunState, draft: AppendDraft, version: number): Promise<Appended> {
    const outcome = await this.#send(run, draft, version);
    reportAppend(this.#context.reports, run, draft, outcome);
    return appended(version, outcome);
  }

  #send(
    { id, locked: { key } }: RunState,
    { at, events, children, starts }: AppendDraft,
    version: number,
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
   * Runs one attempt of a user's body and records it, in one transaction. An error of the body
   * rolls the transaction back, and the run records it.
   */
  async transact(
    run: RunState,
    { name, call, seen, isolation, body }: TransactionDraft,
  ): Promise<(Appended & { readonly entry: Entry }) | RolledBack | undefined> {
    const { database, store, clock } = this.#context;
    const at = clock.now();
    const place = new BodyPlace(clock);
    const watched = (): Tx<unknown> =>
      place.during(() => insideStep({ id: run.id, step: name }, () => startedBody(name, body)));
    let rolledBack: RolledBack | undefined;
    const done = await this.#until(
      run,
      { version: run.version, hasProgress: true },
      async (version) => {
        const input = { id: run.id, version, at, name, call, seen, fence: this.#fence };
        try {
          const attempt = (): Tx<TransactionOutcome> => {
            // The database may run the body again. A refusal before its next start is not the user's error.
            place.isInBody = false;
            return recordTransaction(store, input, watched);
          };
          const outcome = await database.write(`transaction ${name}`, attempt, { isolation });
          return { ...appended(version, outcome), entry: outcome.entry };
        } catch (error) {
          rolledBack = place.rolledBackBy(error);
          if (rolledBack === undefined) throw error;
          return undefined;
        }
      },
    );
    return done ?? rolledBack;
  }

  /** Repeats a write until its outcome is known, starting with the first write or after a refusal. */
  async #until<T extends Appended>(
    run: RunState,
    begun: { readonly version: number; readonly hasProgress: boolean; readonly error?: unknown },
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
        return this.#moved(run, await write(version), begun.hasProgress);
      } catch (error) {
        refused = { error };
      }
    }
  }

  #moved<T extends Appended>(
    run: RunState,
    done: T | undefined,
    hasProgress: boolean,
  ): T | undefined {
    if (done === undefined) return undefined;
    run.version = done.nextVersion;
    if (hasProgress && done.nextVersion > done.version) this.#alone.recorded(run.id);
    return done;
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
    // The lock ended with its wait, and the answer came late. The next worker to lock the run tells its code.
    if (error.code === "EXECUTION_CANCELLING" && goesOn(run))
      return { kind: "drop", reason: error };
    if (!isPassing(error)) return { kind: "park", reason: error };
    if (this.#signal.aborted) return { kind: "drop", reason: error };
    return { kind: "again", version };
  }

  /**
   * The version to append at after other writers, if all their events are control events such
   * as a pause or a cancellation. History from another writer means that the run is lost.
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
      // The cancellation may not have been known here when its hint came.
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

/** The message that came before the timeout of its receive was recorded, if that was the refusal. */
function timeoutRefused(error: unknown): TimeoutRefused | undefined {
  if (!isHoldfastError(error) || error.code !== "MESSAGE_UNREAD") return undefined;
  return { message: Number(error.details["seq"]) };
}

/** True while the code has not ended and no fault was found. */
function goesOn({ settled, poison }: RunState): boolean {
  return settled === undefined && poison === undefined;
}

/**
 * True if a refused run can still be parked. A parking that a cancellation refused ends the run
 * as cancelled instead; that is tried once.
 */
function canBeSetAside({ poison, told }: RunState, { code }: HoldfastError): boolean {
  if (poison === undefined) return true;
  return code === "EXECUTION_CANCELLING" && !told.has("unended");
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
