import { monotonicMs } from "../../host/timers.ts";
import { HoldfastError, isHoldfastError } from "../../model/errors.ts";
import type { ExecutionId } from "../../model/ids/execution-id.ts";
import type { ExecutionResult } from "../../model/execution/result.ts";
import { jittered, retryPauseMs } from "../../model/time/retry-policy.ts";
import type { CancellationView } from "../../stores/execution/control/cancelling.ts";
import type { LockedExecution } from "../../stores/execution/lock/locked.ts";
import type { GivenEvent } from "../../model/execution/given-event.ts";
import { runInterrupted } from "../../stores/execution/topics.ts";
import type { ActivityContext } from "../activity-context.ts";
import type { Definition } from "../definitions.ts";
import { isNonRetryable, isOfTheCodec, recorded } from "../failures.ts";
import type { WorkerParts } from "./worker-parts.ts";
import { behindInterruptions, cancellationOf } from "./history.ts";
import { pauseBefore, repeated } from "../pauses.ts";
import type { HeldLock } from "./renewals.ts";
import { outside, where } from "../run/step-context.ts";
import { runLog, writeLine } from "./run-log.ts";

/** How an attempt ended. */
type Ended =
  | { readonly kind: "returned"; readonly value: unknown }
  | { readonly kind: "threw"; readonly error: unknown }
  /** The worker closes: it is given back and counts for nothing. */
  | { readonly kind: "released" }
  /** Somebody else has it: nothing is written. */
  | { readonly kind: "lost" };

interface Attempt {
  readonly locked: LockedExecution;
  readonly controller: AbortController;
  /** Ends it, whatever its code does. */
  readonly end: (ended: Ended) => void;
  readonly ended: Promise<Ended>;
  /** Why it was told to stop, if somebody cancelled it. */
  cancellation: CancellationView | null;
}

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
    this.#unsubscribe = parts.context.database.subscribe(
      (hint) => {
        if (hint.kind === "change")
          void this.#interrupted(hint.key as ExecutionId);
        else if (hint.kind === "unknown")
          for (const id of this.#attempts.keys()) void this.#interrupted(id);
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
    if (this.#parts.early.interruptions.has(locked.id))
      void this.#interrupted(locked.id);
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
      return { id, key, renewed: () => undefined, lost };
    });
  }

  /** Its lease ends, and the attempt is made again. */
  #tellUnrecorded(
    { id, function: name }: LockedExecution,
    error: unknown,
  ): void {
    this.#parts.context.tell({
      level: "error",
      message: `An attempt of run ${id} of ${name} could not be begun or recorded, and will be made again: ${(error as Error).message}`,
      details: { id, function: name },
    });
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
    }
  }

  async #call(definition: Definition, attempt: Attempt): Promise<void> {
    const ctx = await this.#context(attempt);
    const { locked, end } = attempt;
    // It was lost, cancelled or timed out before it could begin.
    if (ctx.abortSignal.aborted) return end({ kind: "released" });
    const { loop } = this.#parts.context.drain;
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

  async #context({ locked, controller }: Attempt): Promise<ActivityContext> {
    const { holder, context } = this.#parts;
    const {
      pages: { executions },
      tell,
    } = context;
    const { id, failures } = locked;
    const attempt = failures + 1;
    const lastHeartbeat =
      failures === 0 ? undefined : (await executions.get(id)).progress;
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
        executions
          .setProgress(id, details ?? null, { fence: holder })
          .catch((error: unknown) =>
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
  async #record(
    definition: Definition,
    attempt: Attempt,
    ended: Ended,
  ): Promise<void> {
    if (ended.kind === "lost") return;
    const { context, holder } = this.#parts;
    const {
      pages: { executions },
      clock,
    } = context;
    const { signal } = this.#giveUp;
    const { id, key, nextVersion } = attempt.locked;
    const event = this.#eventOf(definition, attempt, ended);
    let version = nextVersion;
    for (let failures = 0; this.#isCurrent(attempt); failures += 1)
      try {
        await executions.append(id, version, [event], { fence: holder, key });
        return;
      } catch (error) {
        if (!isHoldfastError(error)) throw error;
        if (error.code === "VERSION_CONFLICT") {
          const next = await repeated(clock, signal, () =>
            behindInterruptions(context, id, version),
          );
          if (next === undefined) return;
          version = next;
          continue;
        }
        if (!error.retryable) return;
        if (signal.aborted) throw error;
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
        store.values.value(ended.value);
        return finished({ kind: "completed", value: ended.value });
      } catch (error) {
        if (isOfTheCodec(error)) throw error;
        // The same value would be refused again.
        return failed(error);
      }
    }
    if (cancellation !== null) return finished(cancelledBy(cancellation));
    if (ended.kind === "released")
      return {
        kind: "unlocked",
        dueAt: clock.now(),
        reason: "the worker closed",
      };
    const pauseMs = isNonRetryable(ended.error)
      ? undefined
      : retryPauseMs(retry, failures + 1);
    if (pauseMs === undefined) return failed(ended.error);
    const dueAt = clock.now() + jittered(pauseMs, store.random());
    return recorded(ended.error, at, (error) => {
      store.values.value(error);
      return { kind: "attemptFailed", dueAt, error };
    });
  }

  /** Tells the code to stop; if it does not, the attempt ends without it. */
  #cancel(
    attempt: Attempt,
    cancellation: CancellationView,
    graceMs: number,
  ): void {
    const { locked, controller, end } = attempt;
    // It has been told to stop for another reason.
    if (controller.signal.aborted) return;
    const { clock } = this.#parts.context;
    attempt.cancellation = cancellation;
    controller.abort(cancelledWhile(locked.id));
    clock.wakeAt(clock.now() + graceMs, () => end({ kind: "released" }));
  }

  /** Somebody asked for its end. */
  async #interrupted(id: ExecutionId): Promise<void> {
    const attempt = this.#attempts.get(id);
    if (attempt === undefined) return;
    const { executions } = this.#parts.context.pages;
    try {
      const { lifecycle, pending } = (await executions.get(id)).state;
      if (pending.kind === "finished") return lose(attempt);
      if (lifecycle !== "cancelling") return;
      const cancellation = await cancellationOf(this.#parts.context, id);
      if (cancellation !== null)
        this.#cancel(attempt, cancellation, cancelGraceMs);
    } catch {
      // Its end is refused if it has ended elsewhere.
    }
  }
}

/** Somebody else has it: what this attempt still does counts for nothing. */
function lose({ locked, controller, end }: Attempt): void {
  controller.abort(takenOver(locked.id));
  end({ kind: "lost" });
}

async function callBody(
  { body }: Definition,
  ctx: ActivityContext,
  input: unknown,
): Promise<unknown> {
  return body(ctx as never, input);
}

function newAttempt(locked: LockedExecution): Attempt {
  let end: Attempt["end"] = () => undefined;
  const ended = new Promise<Ended>((resolve) => {
    end = resolve;
  });
  return {
    locked,
    controller: new AbortController(),
    end,
    ended,
    cancellation: null,
  };
}

function finished(result: ExecutionResult): GivenEvent {
  return { kind: "finished", result };
}

function cancelledBy({ cause, reason }: CancellationView): ExecutionResult {
  if (cause === "deadline") return { kind: "timedOut" };
  return { kind: "cancelled", ...(reason !== null && { reason }) };
}

function cancelledWhile(id: ExecutionId): HoldfastError {
  return new HoldfastError("RUN_CANCELLED", `Run ${id} was cancelled.`, { id });
}

function takenOver(id: ExecutionId): HoldfastError {
  return new HoldfastError(
    "LOCK_LOST",
    `Run ${id} was taken over by another worker; what this attempt still does is not recorded. Stop.`,
    { id },
  );
}

function workerClosed(): HoldfastError {
  return new HoldfastError(
    "ABORTED",
    "The worker closes; this attempt is given back and made again elsewhere.",
  );
}

function attemptTimedOut(
  { id }: LockedExecution,
  timeoutMs: number,
): HoldfastError {
  return new HoldfastError(
    "ATTEMPT_TIMED_OUT",
    `An attempt of run ${id} took longer than its timeout of ${timeoutMs} ms; what it still returns is not recorded.`,
    { id, timeoutMs },
  );
}
