import { monotonicMs } from "../../host/timers.ts";
import { isHoldfastError } from "../../model/errors.ts";
import type { ExecutionId } from "../../model/ids/execution-id.ts";
import type { ExecutionResult } from "../../model/execution/result.ts";
import { jittered, retryPauseMs } from "../../model/time/retry-policy.ts";
import type { CancellationView } from "../../stores/execution/control/cancelling.ts";
import type { HeldLockOf } from "../../stores/execution/lock/held.ts";
import type { LockedExecution } from "../../stores/execution/lock/locked.ts";
import type { GivenEvent } from "../../model/execution/given-event.ts";
import { runInterrupted } from "../../stores/execution/topics.ts";
import type { ActivityContext } from "../definition/activity-context.ts";
import type { Definition } from "../definition/definitions.ts";
import { isLosing, isNonRetryable, isOfTheCodec, recorded, isPassing } from "../failures.ts";
import {
  attemptTimedOut,
  cancelledWhile,
  isUnder,
  lose,
  newAttempt,
  workerClosed,
  type Attempt,
  type Ended,
} from "./attempt.ts";
import type { WorkerParts } from "./worker-parts.ts";
import { behindInterruptions, cancellationOf } from "./hot/history.ts";
import { pauseBefore, repeated } from "../pauses.ts";
import { renewedLock, type HeldLock } from "./renewals.ts";
import { otherKind } from "../run/other-kind.ts";
import { outside, where } from "../run/step-context.ts";
import { runLog, writeLine } from "./run-log.ts";
import { UnnamedChanges } from "./hot/unnamed-changes.ts";

/** How long code that was told to stop may take to do so. */
const cancelGraceMs = 10_000;

/** The activities that a worker runs: one attempt each. */
export class ActivityRuns {
  readonly #parts: WorkerParts;
  readonly #attempts = new Map<ExecutionId, Attempt>();
  readonly #done = new Set<Promise<void>>();
  readonly #unsubscribe: () => void;
  /** Aborted when the time to close is over: what cannot be recorded by then is not. */
  readonly #giveUp = new AbortController();

  constructor(parts: WorkerParts) {
    this.#parts = parts;
    const unnamed = new UnnamedChanges(
      parts,
      () => Array.from(this.#attempts.values(), ({ locked }) => locked),
      ({ id, lifecycle, state }) => {
        if (lifecycle !== "active" || state === "finished") void this.#interrupted(id);
      },
    );
    this.#unsubscribe = parts.context.database.subscribe(
      (hint) => {
        if (hint.kind === "change") void this.#interrupted(hint.key as ExecutionId);
        else if (hint.kind === "unknown") void unnamed.look();
      },
      [{ operation: runInterrupted }],
    );
  }

  /** Runs one attempt of what was just locked, and holds a place. */
  begin(definition: Definition, locked: LockedExecution): void {
    const attempt = newAttempt(locked);
    // Its lock has ended without this worker having noticed.
    const before = this.#attempts.get(locked.id);
    if (before !== undefined) lose(before);
    this.#attempts.set(locked.id, attempt);
    // Somebody may have interrupted it since it was locked.
    if (this.#parts.early.interruptions.has(locked.id)) void this.#interrupted(locked.id);
    const done = this.#run(definition, attempt)
      .catch((error: unknown) => this.#tellUnrecorded(locked, error))
      .finally(() => {
        if (this.#isCurrent(attempt)) this.#attempts.delete(locked.id);
        this.#done.delete(done);
        this.#parts.slots.give();
      });
    this.#done.add(done);
  }

  /** Not so when its run was locked again by this very worker. */
  #isCurrent(attempt: Attempt): boolean {
    return this.#attempts.get(attempt.locked.id) === attempt;
  }

  running(): readonly HeldLock[] {
    return [...this.#attempts.values()].map((attempt) => {
      const { id, key } = attempt.locked;
      const lost = (): void => lose(attempt);
      const renewed = (until: number): void => {
        attempt.leaseUntil = Math.max(attempt.leaseUntil, until);
      };
      return { id, key, renewed, lost };
    });
  }

  /** Its lease ends, and the attempt is made again. */
  #tellUnrecorded({ id, function: name }: LockedExecution, error: unknown): void {
    this.#parts.context.tell({
      level: "error",
      message: `An attempt of run ${id} of ${name} could not be begun or recorded, and will be made again: ${(error as Error).message}`,
      details: { id, function: name },
    });
  }

  #tellParked(
    id: ExecutionId,
    { code, reason }: Extract<GivenEvent, { readonly kind: "parked" }>,
  ): void {
    const { tell } = this.#parts.context;
    tell({ level: "error", message: reason, details: { id, code } });
  }

  /** Whether an attempt of a run is made here under a lock. */
  holds(held: HeldLockOf): boolean {
    return isUnder(this.#attempts.get(held.id), held);
  }

  /** The functions of those that hold a place. */
  placed(): readonly string[] {
    return [...this.#attempts.values()].map(({ locked }) => locked.function);
  }

  /** Tells those that run to stop once the time is over; what does not end is given back. */
  async close(by: number): Promise<void> {
    const { clock } = this.#parts.context;
    const cancel = clock.wakeAt(by, () => {
      for (const { controller, end } of this.#attempts.values()) {
        controller.abort(workerClosed());
        end({ kind: "released" });
      }
      this.#giveUp.abort();
    });
    await Promise.all(this.#done);
    cancel();
    this.#unsubscribe();
  }

  async #run(definition: Definition, attempt: Attempt): Promise<void> {
    const { clock } = this.#parts.context;
    const { timeoutMs } = definition;
    const { controller, end, locked } = attempt;
    const cancelTimer =
      timeoutMs === undefined
        ? () => undefined
        : clock.wakeAt(clock.now() + timeoutMs, () => {
            const error = attemptTimedOut(locked, timeoutMs);
            controller.abort(error);
            end({ kind: "threw", error });
          });
    try {
      const { cancellation } = locked;
      if (cancellation === null) await this.#call(definition, attempt);
      else this.#cancel(attempt, cancellation, 0);
      await this.#record(definition, attempt, await attempt.ended);
    } finally {
      cancelTimer();
      attempt.cancelGrace();
    }
  }

  async #call(definition: Definition, attempt: Attempt): Promise<void> {
    const { locked, end } = attempt;
    if (definition.kind !== "activity")
      return end({ kind: "refused", why: otherKind(locked, definition) });
    const ctx = await this.#context(attempt);
    await this.#keepLock(attempt);
    // It was lost, cancelled or timed out before it could begin.
    if (ctx.abortSignal.aborted) return end({ kind: "released" });
    const { bodies, drain } = this.#parts.context;
    void attempt.ended.then(bodies.begin(ctx.idempotencyKey));
    const { loop } = drain;
    const { toldMs } = loop;
    const began = monotonicMs();
    outside(() =>
      where.run({ id: locked.id, attempt: ctx.attempt }, () => {
        void callBody(definition, ctx, locked.input).then(
          (value) => end({ kind: "returned", value }),
          (error: unknown) => end({ kind: "threw", error }),
        );
      }),
    );
    loop.took(monotonicMs() - began, toldMs, () => ({
      functions: [definition.name],
      id: locked.id,
    }));
  }

  /** Its lease may have ended before it could begin: then somebody else may have it. */
  async #keepLock(attempt: Attempt): Promise<void> {
    const { clock } = this.#parts.context;
    const { locked, controller } = attempt;
    while (attempt.leaseUntil <= clock.now() && !controller.signal.aborted) {
      const until = await renewedLock(this.#parts, locked);
      if (until === undefined) lose(attempt);
      else attempt.leaseUntil = until;
    }
  }

  async #context({ locked, controller }: Attempt): Promise<ActivityContext> {
    const { holder, context } = this.#parts;
    const {
      pages: { executions },
      tell,
    } = context;
    const { id, failures } = locked;
    const attempt = failures + 1;
    const { clock } = context;
    const lastHeartbeat =
      failures === 0
        ? undefined
        : (await repeated(clock, this.#giveUp.signal, () => executions.get(id))).progress;
    return {
      id,
      attempt,
      abortSignal: controller.signal,
      idempotencyKey: id,
      log: runLog((level, message, data) =>
        writeLine(context, { ...locked, attempt }, level, message, data),
      ),
      lastHeartbeat,
      heartbeat(details) {
        executions.setProgress(id, details ?? null, { fence: holder }).catch((error: unknown) =>
          tell({
            level: "warn",
            message: `A heartbeat of ${id} could not be kept: ${(error as Error).message}`,
            details: { id },
          }),
        );
      },
    };
  }

  /** Writes how an attempt ended, until it is known to be written. */
  async #record(definition: Definition, attempt: Attempt, ended: Ended): Promise<void> {
    if (ended.kind === "lost") return;
    const { context, holder } = this.#parts;
    const {
      pages: { executions },
      clock,
    } = context;
    const { signal } = this.#giveUp;
    const { id, key, nextVersion } = attempt.locked;
    let event = this.#eventOf(definition, attempt, ended);
    let version = nextVersion;
    for (let failures = 0; this.#isCurrent(attempt); failures += 1)
      try {
        await executions.append(id, version, [event], { fence: holder, key });
        if (event.kind === "parked") this.#tellParked(id, event);
        return;
      } catch (error) {
        if (!isHoldfastError(error)) throw error;
        if (error.code === "VERSION_CONFLICT") {
          const next = await repeated(clock, signal, () =>
            behindInterruptions(context, id, version),
          );
          if (next === undefined) return;
          version = next;
          // The hint of a cancellation may come later than this: a failed
          // attempt of a run that is to end is its end.
          attempt.cancellation ??= await repeated(clock, signal, () => cancellationOf(context, id));
          event = this.#eventOf(definition, attempt, ended);
          continue;
        }
        if (isLosing(error)) return;
        if (!isPassing(error) || signal.aborted) throw error;
        await pauseBefore(clock, failures, signal);
      }
  }

  #eventOf(
    { retry }: Definition,
    { locked: { failures }, cancellation }: Attempt,
    ended: Exclude<Ended, { kind: "lost" }>,
  ): GivenEvent {
    const { clock, store } = this.#parts.context;
    const at = { attempt: failures + 1 };
    const failed = (thrown: unknown): GivenEvent =>
      recorded(thrown, at, (error) => {
        const event = finished({ kind: "failed", error });
        store.values.event(event);
        return event;
      });
    if (ended.kind === "returned") {
      try {
        const event = finished({ kind: "completed", value: ended.value });
        // As it is written: what just fits alone may not fit there.
        store.values.event(event);
        return event;
      } catch (error) {
        if (isOfTheCodec(error)) throw error;
        // The same value would be refused again.
        return failed(error);
      }
    }
    if (cancellation !== null) return finished(cancelledBy(cancellation));
    if (ended.kind === "refused") {
      const { code, message: reason } = ended.why;
      const codeVersion = this.#parts.settings.codeVersion ?? null;
      return { kind: "parked", code, reason, codeVersion };
    }
    if (ended.kind === "released")
      return {
        kind: "unlocked",
        dueAt: clock.now(),
        reason: "the worker closed",
      };
    const pauseMs = isNonRetryable(ended.error) ? undefined : retryPauseMs(retry, failures + 1);
    if (pauseMs === undefined) return failed(ended.error);
    const dueAt = clock.now() + jittered(pauseMs, store.random());
    return recorded(ended.error, at, (error) => {
      store.values.value(error);
      return { kind: "attemptFailed", dueAt, error };
    });
  }

  /** Tells the code to stop; if it does not, the attempt ends without it. */
  #cancel(attempt: Attempt, cancellation: CancellationView, graceMs: number): void {
    const { locked, controller, end } = attempt;
    // It has been told to stop for another reason.
    if (controller.signal.aborted) return;
    const { clock } = this.#parts.context;
    attempt.cancellation = cancellation;
    controller.abort(cancelledWhile(locked.id));
    attempt.cancelGrace = clock.wakeAt(clock.now() + graceMs, () => end({ kind: "released" }));
  }

  /** Somebody asked for its end. */
  async #interrupted(id: ExecutionId): Promise<void> {
    const attempt = this.#attempts.get(id);
    if (attempt === undefined) return;
    const { context } = this.#parts;
    const { clock, pages } = context;
    try {
      const interruption = await repeated(clock, this.#giveUp.signal, async () => {
        const { lifecycle, pending } = (await pages.executions.get(id)).state;
        if (pending.kind === "finished") return "ended";
        return lifecycle === "cancelling" ? cancellationOf(context, id) : null;
      });
      if (interruption === "ended") lose(attempt);
      else if (interruption !== null) this.#cancel(attempt, interruption, cancelGraceMs);
    } catch {
      // Its end is refused if it has ended elsewhere.
    }
  }
}

async function callBody(
  { body }: Definition,
  ctx: ActivityContext,
  input: unknown,
): Promise<unknown> {
  return body(ctx as never, input);
}

function finished(result: ExecutionResult): GivenEvent {
  return { kind: "finished", result };
}

function cancelledBy({ cause, reason }: CancellationView): ExecutionResult {
  if (cause === "deadline") return { kind: "timedOut" };
  return { kind: "cancelled", ...(reason !== null && { reason }) };
}
