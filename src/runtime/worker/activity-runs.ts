import { monotonicMs } from "../../host/timers.ts";
import { isHoldfastError } from "../../model/errors.ts";
import type { ExecutionId } from "../../model/ids/execution-id.ts";
import type { ExecutionResult } from "../../model/execution/result.ts";
import { jittered, retryPauseMs } from "../../model/time/retry-policy.ts";
import type { CancellationView } from "../../stores/execution/control/cancelling.ts";
import type { HeldLockOf } from "../../stores/execution/lock/held.ts";
import type { LockedExecution } from "../../stores/execution/lock/locked.ts";
import type { StoredError } from "../../model/values/stored-error.ts";
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
import type { StepOutput } from "../stream/run-output.ts";
import type { WorkerParts } from "./worker-parts.ts";
import { behindInterruptions, cancellationOf } from "./hot/history.ts";
import { pauseBefore, repeated } from "../pauses.ts";
import { renewedLock, type HeldLock } from "./renewals.ts";
import { otherKind } from "../run/other-kind.ts";
import { keyOf, outside, where } from "../run/step-context.ts";
import { runLog, writeLine } from "../run/run-log.ts";
import { UnnamedChanges } from "./hot/unnamed-changes.ts";

/** The time that cancelled code gets to stop. */
const cancelGraceMs = 10_000;

/** The activities that a worker executes: one attempt each. */
export class ActivityRuns {
  readonly #parts: WorkerParts;
  readonly #attempts = new Map<ExecutionId, Attempt>();
  readonly #done = new Set<Promise<void>>();
  readonly #unsubscribe: () => void;
  /** Aborted at the end of the closing time. An outcome that is unrecorded by then stays unrecorded. */
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

  /** Starts one attempt of a run that was just locked, which holds a place. */
  begin(definition: Definition, locked: LockedExecution): void {
    const attempt = newAttempt(locked);
    // The earlier attempt lost its lock without this worker noticing.
    const before = this.#attempts.get(locked.id);
    if (before !== undefined) lose(before);
    this.#attempts.set(locked.id, attempt);
    // A caller may have interrupted the run since it was locked.
    if (this.#parts.early.interruptions.has(locked.id)) void this.#interrupted(locked.id);
    const done = this.#run(definition, attempt)
      .catch((error: unknown) => this.#tellUnrecorded(locked, error))
      .finally(() => {
        if (this.#isCurrent(attempt)) this.#attempts.delete(locked.id);
        this.#done.delete(done);
        this.#parts.slots.give(definition.name);
      });
    this.#done.add(done);
  }

  /** False if this worker has locked the run again since. */
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

  /** Reports an unrecorded attempt. Its lease expires, and the attempt is repeated. */
  #tellUnrecorded({ id, function: name }: LockedExecution, error: unknown): void {
    this.#parts.context.tell({
      level: "error",
      message: `An attempt of run ${id} of ${name} could not be started or recorded, and will be repeated: ${(error as Error).message}`,
      details: { id, function: name },
    });
  }

  /** Reports the recorded outcome of an attempt. */
  #report({ id, function: name, attempt }: LockedExecution, event: GivenEvent, unread = 0): void {
    const { reports } = this.#parts.context;
    const run = { id, function: name };
    if (event.kind === "parked") reports.parked(run, event);
    if (event.kind === "attemptFailed")
      reports.attemptFailed(run, {
        attempt,
        retryAt: event.dueAt,
        error: event.error as StoredError,
      });
    if (event.kind !== "finished") return;
    reports.endedAs(run, event.result.kind, () => event.result);
    if (unread > 0) reports.unread(run, unread);
  }

  /** True if this worker makes an attempt of the run under the lock. */
  holds(held: HeldLockOf): boolean {
    return isUnder(this.#attempts.get(held.id), held);
  }

  /** Tells running attempts to stop once the time is over. Unfinished attempts are released. */
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
      const ended = await attempt.ended;
      if (ended.kind === "lost") attempt.output?.drop();
      else await attempt.output?.close();
      await this.#record(definition, attempt, ended);
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
    // The attempt was lost, cancelled or timed out before it could start.
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

  /** Renews an expired lease before the attempt starts, since another worker may have the run. */
  async #keepLock(attempt: Attempt): Promise<void> {
    const { clock } = this.#parts.context;
    const { locked, controller } = attempt;
    while (attempt.leaseUntil <= clock.now() && !controller.signal.aborted) {
      const until = await renewedLock(this.#parts, locked);
      if (until === undefined) lose(attempt);
      else attempt.leaseUntil = until;
    }
  }

  async #context(made: Attempt): Promise<ActivityContext> {
    const { locked, controller } = made;
    const { holder, context } = this.#parts;
    const {
      pages: { executions },
      tell,
    } = context;
    const { id, key, nextVersion, attempt, isRepeat } = locked;
    const run = { id, execution: key, fence: holder, lockVersion: nextVersion - 1 };
    const { clock } = context;
    const outputOf = (): StepOutput =>
      (made.output ??= context.output.of({ ...run, continuation: 0 }).step(0, null, attempt));
    const lastHeartbeat =
      attempt === 1
        ? undefined
        : (await repeated(clock, this.#giveUp.signal, () => executions.get(id))).progress;
    return {
      id,
      metadata: Object.freeze(locked.created.metadata),
      attempt,
      isRepeat,
      abortSignal: controller.signal,
      idempotencyKey: keyOf(locked),
      log: runLog((level, message, data) => writeLine(context, locked, level, message, data)),
      lastHeartbeat,
      stream: (chunk) => outputOf().show(chunk),
      heartbeat(details) {
        executions.setProgress(id, details ?? null, { fence: holder }).catch((error: unknown) =>
          tell({
            level: "warn",
            message: `A heartbeat of ${id} could not be recorded: ${(error as Error).message}`,
            details: { id },
          }),
        );
      },
    };
  }

  /** Records the outcome of an attempt, and retries until the record is known to be written. */
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
        const { unread } = await executions.append(id, version, [event], { fence: holder, key });
        return this.#report(attempt.locked, event, unread);
      } catch (error) {
        if (!isHoldfastError(error)) throw error;
        if (error.code === "VERSION_CONFLICT") {
          const next = await repeated(clock, signal, () =>
            behindInterruptions(context, id, version),
          );
          if (next === undefined) return;
          version = next;
          // The hint of a cancellation may arrive later than this refusal. A failed attempt of
          // a cancelled run ends the run.
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
    { locked: { failures, attempt }, cancellation }: Attempt,
    ended: Exclude<Ended, { kind: "lost" }>,
  ): GivenEvent {
    const { clock, store } = this.#parts.context;
    const at = { attempt };
    const failed = (thrown: unknown): GivenEvent =>
      recorded(thrown, at, (error) => {
        const event = finished({ kind: "failed", error });
        store.values.event(event);
        return event;
      });
    if (ended.kind === "returned") {
      try {
        const event = finished({ kind: "completed", value: ended.value });
        // Checked in its stored form: a value that just fits on its own may not fit there.
        store.values.event(event);
        return event;
      } catch (error) {
        if (isOfTheCodec(error)) throw error;
        // The store would refuse the same value again.
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

  /** Tells the code to stop. If the code ignores it, the attempt ends without it. */
  #cancel(attempt: Attempt, cancellation: CancellationView, graceMs: number): void {
    const { locked, controller, end } = attempt;
    // The attempt was told to stop for another reason.
    if (controller.signal.aborted) return;
    const { clock } = this.#parts.context;
    attempt.cancellation = cancellation;
    controller.abort(cancelledWhile(locked.id));
    attempt.cancelGrace = clock.wakeAt(clock.now() + graceMs, () => end({ kind: "released" }));
  }

  /** Cancels the attempt of an interrupted run, or drops it if the run has ended. */
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
      // The store refuses this attempt's outcome if the run has ended elsewhere.
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
