import { monotonicMs } from "../../host/timers.ts";
import { HoldfastError } from "../../model/errors.ts";
import type { Clock } from "../../model/time/clock.ts";
import { jittered, retryPauseMs, type RetryPolicy } from "../../model/time/retry-policy.ts";
import type { Encoded } from "../../model/values/encoded.ts";
import { isNonRetryable, isOfTheCodec, recorded } from "../failures.ts";
import type { StepBody } from "../definition/workflow-context.ts";
import { ByCall } from "./by-call.ts";
import { AttemptContext, outside, where, type Where } from "./step-context.ts";

/** A call of `ctx.step`. */
export interface Step {
  readonly call: number;
  readonly name: string;
  readonly body: StepBody<unknown>;
  readonly retry: RetryPolicy;
  readonly timeoutMs: number | undefined;
}

/** How a step ended, or that an attempt of it failed: what is to be recorded. */
type StepRecord =
  | {
      readonly kind: "stepFinished";
      readonly name: string;
      readonly inputHash: null;
      readonly outcome: "completed" | "failed";
      readonly value: Encoded;
      readonly call: number;
    }
  | {
      readonly kind: "stepAttemptFailed";
      readonly name: string;
      readonly attempt: number;
      readonly retryAt: number;
      readonly error: Encoded;
      readonly call: number;
    };

/** What the steps of a run need of it. */
export interface StepHost {
  readonly id: string;
  /** Names this pass of the run. */
  readonly pass: string;
  readonly clock: Clock;
  readonly random: () => number;
  readonly encode: (value: unknown) => Encoded;
  /** Told how long the body of a step ran before it gave way. */
  readonly took: (step: string, ms: number) => void;
  /** A body goes on behind its first await; returns the way to say that it has ended. */
  readonly began: (idempotencyKey: string) => () => void;
  /** Nothing can be recorded of a step: its run cannot go on as it is. */
  readonly broke: (error: unknown) => void;
  /** Called as soon as there is something to record. */
  readonly record: (record: StepRecord) => void;
}

interface Running {
  readonly call: number;
  readonly step: Step;
  readonly attempt: AttemptContext;
  readonly inside: Where;
  cancelTimer: () => void;
  /** It has ended, or nobody waits for its end any more. */
  ended: () => void;
}

interface Pausing {
  readonly step: Step;
  readonly failures: number;
  readonly retryAt: number;
}

/** A pause up to this long is waited out in memory; a longer one is the store's to remember. */
const shortPauseMs = 1_000;

/** The steps of one run that are being done, and those between two attempts. */
export class Steps {
  readonly #host: StepHost;
  readonly #running = new ByCall<Running>();
  readonly #pausing = new Map<number, Pausing>();
  #isOver = false;

  constructor(host: StepHost) {
    this.#host = host;
  }

  /** True while the run must not rest: something is being done, or soon will be. */
  isBusy(now: number): boolean {
    if (this.#running.size > 0) return true;
    if (this.#pausing.size === 0) return false;
    for (const { retryAt } of this.#pausing.values())
      if (retryAt - now <= shortPauseMs) return true;
    return false;
  }

  get isRunning(): boolean {
    return this.#running.size > 0;
  }

  /** What is being done just now. */
  get runningNames(): readonly string[] {
    return this.#running.all().map(({ step }) => step.name);
  }

  /** When the next attempt of those that pause is due. */
  get nextRetryAt(): number | undefined {
    // Asked at each rest, where an iterator over nothing shows.
    if (this.#pausing.size === 0) return undefined;
    let next: number | undefined;
    for (const { retryAt } of this.#pausing.values())
      if (next === undefined || retryAt < next) next = retryAt;
    return next;
  }

  /** Begins the next attempt, or waits until it may begin. */
  start(step: Step, failures: number = 0, retryAt: number = 0): void {
    if (retryAt > this.#host.clock.now()) this.#pausing.set(step.call, { step, failures, retryAt });
    else this.#attempt(step, failures + 1);
  }

  /** Begins the attempts whose pause is over. */
  startDue(now: number): void {
    if (this.#pausing.size === 0) return;
    const due = [...this.#pausing.values()].filter(({ retryAt }) => retryAt <= now);
    for (const { step, failures } of due) {
      this.#pausing.delete(step.call);
      this.#attempt(step, failures + 1);
    }
  }

  /** The run was cancelled: what runs is told and records its outcome, what pauses has failed. */
  cancel(reason: Error): void {
    for (const { attempt } of this.#running.all()) attempt.cancel(reason);
    for (const { step } of Array.from(this.#pausing.values())) this.fail(step, reason);
  }

  /** Records a step as failed that is not running. */
  fail(step: Step, error: unknown): void {
    const failures = this.#pausing.get(step.call)?.failures ?? 0;
    this.#pausing.delete(step.call);
    const stored = this.#encoded(step, failures, error);
    if (stored !== undefined) this.#finish(step, "failed", stored);
  }

  /** Nothing that still runs can be recorded any more. The reason is made only if somebody is told: most runs end with nothing running. */
  drop(reasonOf: () => Error): void {
    this.#isOver = true;
    this.#pausing.clear();
    if (this.#running.size === 0) return;
    const reason = reasonOf();
    for (const running of this.#running.all()) {
      const { attempt, inside } = running;
      running.cancelTimer();
      running.ended();
      inside.isStepOver = true;
      attempt.abort(reason);
    }
    this.#running.clear();
  }

  #attempt(step: Step, number: number): void {
    const { id, pass } = this.#host;
    const { name, call } = step;
    const attempt = new AttemptContext(number, pass, call);
    const inside: Where = { id, step: name, attempt: number };
    const running: Running = {
      call,
      step,
      attempt,
      inside,
      cancelTimer: nothing,
      ended: nothing,
    };
    this.#running.put(running);
    let result: unknown;
    let isLater = false;
    const began = monotonicMs();
    try {
      result = outside(() => where.run(inside, () => step.body(attempt)));
      isLater = isThenable(result);
    } catch (error) {
      return this.#failed(running, error);
    } finally {
      this.#host.took(name, monotonicMs() - began);
    }
    if (!isLater) return this.#done(running, result);
    running.ended = this.#host.began(attempt.idempotencyKey);
    this.#armTimeout(running);
    void Promise.resolve(result).then(
      (value) => this.#done(running, value),
      (error: unknown) => this.#failed(running, error),
    );
  }

  #armTimeout(running: Running): void {
    const { step, attempt } = running;
    const { timeoutMs } = step;
    if (timeoutMs === undefined) return;
    const { clock } = this.#host;
    running.cancelTimer = clock.wakeAt(clock.now() + timeoutMs, () => {
      const error = stepTimedOut(step, timeoutMs);
      attempt.abort(error);
      this.#failed(running, error);
    });
  }

  /** False when it had ended before, as after a timeout, or no longer matters. */
  #ends(running: Running): boolean {
    const { step } = running;
    if (this.#isOver || this.#running.get(step.call) !== running) return false;
    this.#running.take(step.call);
    running.cancelTimer();
    running.ended();
    running.inside.isStepOver = true;
    return true;
  }

  #done(running: Running, value: unknown): void {
    if (!this.#ends(running)) return;
    const { step, attempt } = running;
    let encoded: Encoded | undefined;
    try {
      encoded = this.#host.encode(value);
    } catch (error) {
      if (isOfTheCodec(error)) return this.#host.broke(error);
      // The same value would be refused again.
      encoded = this.#encoded(step, attempt.attempt, error);
      if (encoded !== undefined) this.#finish(step, "failed", encoded);
      return;
    }
    this.#finish(step, "completed", encoded);
  }

  #failed(running: Running, error: unknown): void {
    if (!this.#ends(running)) return;
    const { step, attempt } = running;
    const { clock, random } = this.#host;
    const stored = this.#encoded(step, attempt.attempt, error);
    if (stored === undefined) return;
    const pauseMs =
      isNonRetryable(error) || attempt.isCancelled
        ? undefined
        : retryPauseMs(step.retry, attempt.attempt);
    if (pauseMs === undefined) return this.#finish(step, "failed", stored);
    const retryAt = clock.now() + jittered(pauseMs, random());
    this.#pausing.set(step.call, { step, failures: attempt.attempt, retryAt });
    this.#host.record({
      kind: "stepAttemptFailed",
      name: step.name,
      attempt: attempt.attempt,
      retryAt,
      error: stored,
      call: step.call,
    });
  }

  /** Undefined when nothing can be encoded, which has been told. */
  #encoded({ name }: Step, attempt: number, error: unknown): Encoded | undefined {
    const at = { step: name, attempt: Math.max(attempt, 1) };
    try {
      return recorded(error, at, (stored) => this.#host.encode(stored));
    } catch (broken) {
      this.#host.broke(broken);
      return undefined;
    }
  }

  #finish(step: Step, outcome: "completed" | "failed", value: Encoded): void {
    const { name, call } = step;
    this.#host.record({
      kind: "stepFinished",
      name,
      inputHash: null,
      outcome,
      value,
      call,
    });
  }
}

const nothing = (): void => undefined;

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return (
    typeof value === "object" &&
    value !== null &&
    typeof (value as { then?: unknown }).then === "function"
  );
}

function stepTimedOut({ name }: Step, timeoutMs: number): HoldfastError {
  return new HoldfastError(
    "STEP_TIMED_OUT",
    `Step "${name}" took longer than its timeout of ${timeoutMs} ms; what it still returns is not recorded.`,
    { step: name, timeoutMs },
  );
}
