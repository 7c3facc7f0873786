import { monotonicMs } from "../../host/timers.ts";
import { HoldfastError } from "../../model/errors.ts";
import type { Clock } from "../../model/time/clock.ts";
import { jittered, retryPauseMs } from "../../model/time/retry-policy.ts";
import type { Encoded } from "../../model/values/encoded.ts";
import { isNonRetryable, isOfTheCodec, recorded } from "../failures.ts";
import type { StepOutput } from "../stream/run-output.ts";
import { ByCall } from "./by-call.ts";
import type { BodyTimes } from "./journal.ts";
import type { RolledBack } from "./run-host.ts";
import type { Step, Task, TransactionAttempt } from "./tasks.ts";
import { AttemptContext, outside, where, type Where } from "./step-context.ts";

/** The outcome of a step or a transaction, or of a failed attempt, or the announcement of one, as it is recorded. */
type StepRecord =
  | {
      readonly kind: "stepBegan";
      readonly name: string;
      readonly attempt: number;
      readonly call: number;
    }
  | {
      readonly kind: "stepFinished" | "transactionFinished";
      readonly name: string;
      readonly inputHash: null;
      readonly outcome: "completed" | "failed";
      readonly value: Encoded;
      readonly call: number;
    }
  | {
      readonly kind: "stepAttemptFailed";
      readonly name: string;
      readonly isTransaction?: true;
      readonly attempt: number;
      readonly retryAt: number;
      readonly error: Encoded;
      readonly call: number;
    };

/** The services that the steps of a run need of the run. */
export interface StepHost {
  readonly id: string;
  /** Names this pass of the run. */
  readonly pass: string;
  readonly clock: Clock;
  readonly random: () => number;
  readonly encode: (value: unknown) => Encoded;
  /** Reports the time that the body of a step ran before it gave way. */
  readonly took: (step: string, ms: number) => void;
  /** Reports that a body continues after its first await. Returns a function that reports its end. */
  readonly began: (idempotencyKey: string) => () => void;
  /** The live output of an attempt. */
  readonly output: (call: number, step: string, attempt: number) => StepOutput;
  /** Reports an error that prevents recording a step: the run cannot continue as it is. */
  readonly broke: (error: unknown) => void;
  /** Called as soon as there is something to record. */
  readonly record: (record: StepRecord, times: BodyTimes | undefined) => void;
  /** Queues an attempt of a transaction behind earlier ones: it is an append of the run. */
  readonly transact: (attempt: TransactionAttempt) => void;
}

interface Running {
  readonly call: number;
  readonly step: Step;
  readonly attempt: AttemptContext;
  readonly inside: Where;
  readonly began: number;
  cancelTimer: () => void;
  /** Reports that the body has ended, or that its end no longer matters. */
  ended: () => void;
}

interface Pausing {
  readonly task: Task;
  readonly failures: number;
  readonly retryAt: number;
  /** The last attempt that an earlier pass has announced; 0 for none. */
  readonly begun: number;
}

/** An attempt whose announcement is being recorded. */
interface Announced {
  readonly step: Step;
  readonly attempt: number;
}

/** The longest pause that is waited out in memory; the store remembers longer pauses. */
const shortPauseMs = 1_000;

/** The running steps of one run, and its steps and transactions between two attempts. */
export class Steps {
  readonly #host: StepHost;
  readonly #running = new ByCall<Running>();
  readonly #pausing = new Map<number, Pausing>();
  readonly #announced = new Map<number, Announced>();
  #isOver = false;

  constructor(host: StepHost) {
    this.#host = host;
  }

  /** True while the run must not rest: a step is running or will run soon. */
  isBusy(now: number): boolean {
    if (this.#running.size > 0 || this.#announced.size > 0) return true;
    if (this.#pausing.size === 0) return false;
    for (const { retryAt } of this.#pausing.values())
      if (retryAt - now <= shortPauseMs) return true;
    return false;
  }

  get isRunning(): boolean {
    return this.#running.size > 0;
  }

  /** The names of the running steps. */
  get runningNames(): readonly string[] {
    return this.#running.all().map(({ step }) => step.name);
  }

  /** The instant at which the next attempt is due. */
  get nextRetryAt(): number | undefined {
    // Read at each rest, where an iterator over nothing is measurable.
    if (this.#pausing.size === 0) return undefined;
    let next: number | undefined;
    for (const { retryAt } of this.#pausing.values())
      if (next === undefined || retryAt < next) next = retryAt;
    return next;
  }

  /** Starts the next attempt, or waits until it may start. */
  start(task: Task, failures: number = 0, retryAt: number = 0, begun: number = 0): void {
    if (retryAt > this.#host.clock.now())
      this.#pausing.set(task.call, { task, failures, retryAt, begun });
    else this.#begin(task, failures + 1, begun);
  }

  /** Starts an attempt whose announcement is durable. */
  beginAnnounced(call: number): void {
    const announced = this.#announced.get(call);
    if (announced === undefined) return;
    this.#announced.delete(call);
    this.#attempt(announced.step, announced.attempt, false);
  }

  /** Records that a step has failed whose attempt was announced and did not start. */
  failAnnounced(call: number, error: unknown): void {
    const announced = this.#announced.get(call);
    if (announced === undefined) return;
    this.#announced.delete(call);
    this.fail(announced.step, error);
  }

  /** Starts the attempts whose pause is over. */
  startDue(now: number): void {
    if (this.#pausing.size === 0) return;
    const due = [...this.#pausing.values()].filter(({ retryAt }) => retryAt <= now);
    for (const { task, failures, begun } of due) {
      this.#pausing.delete(task.call);
      this.#begin(task, failures + 1, begun);
    }
  }

  /** Cancels all steps: running steps are told and record their outcome, pausing steps fail. */
  cancel(reason: Error): void {
    for (const { attempt } of this.#running.all()) attempt.cancel(reason);
    for (const { task } of Array.from(this.#pausing.values())) this.fail(task, reason);
  }

  /** Records that a step or a transaction without a running attempt has failed. */
  fail(task: Task, error: unknown): void {
    const failures = this.#pausing.get(task.call)?.failures ?? 0;
    this.#pausing.delete(task.call);
    const stored = this.#encoded(task, failures, error);
    if (stored !== undefined) this.#finish(task, "failed", stored, undefined);
  }

  /**
   * Handles an attempt of a transaction that stored nothing. A body's error is its outcome; a
   * database error is retried.
   */
  rolledBack(
    { transaction, attempt }: TransactionAttempt,
    { thrown, isOfTheDatabase, ran }: RolledBack,
  ): void {
    // A codec error says nothing about the transaction.
    if (isOfTheCodec(thrown)) return this.#host.broke(thrown);
    this.#recordFailure(transaction, attempt, { error: thrown, mayRetry: isOfTheDatabase }, ran);
  }

  /**
   * Drops all steps: their outcomes can no longer be recorded. The reason is made only if a
   * step is running, since most runs end with none.
   */
  drop(reasonOf: () => Error): void {
    this.#isOver = true;
    this.#pausing.clear();
    this.#announced.clear();
    if (this.#running.size === 0) return;
    const reason = reasonOf();
    for (const running of this.#running.all()) {
      const { attempt, inside } = running;
      running.cancelTimer();
      running.ended();
      inside.isStepOver = true;
      attempt.output?.drop();
      attempt.abort(reason);
    }
    this.#running.clear();
  }

  #begin(task: Task, attempt: number, begun: number): void {
    if (task.kind === "transaction") return this.#host.transact({ transaction: task, attempt });
    const isRepeat = attempt <= begun;
    if (!task.isAnnounced || isRepeat) return this.#attempt(task, attempt, isRepeat);
    const { name, call } = task;
    this.#announced.set(call, { step: task, attempt });
    this.#host.record({ kind: "stepBegan", name, attempt, call }, undefined);
  }

  #attempt(step: Step, number: number, isRepeat: boolean): void {
    const { id, pass, clock } = this.#host;
    const { name, call } = step;
    const attempt = new AttemptContext(number, pass, call, isRepeat, () =>
      this.#host.output(call, name, number),
    );
    const inside: Where = { id, step: name, attempt: number };
    const running: Running = {
      call,
      step,
      attempt,
      inside,
      began: clock.now(),
      cancelTimer: nothing,
      ended: nothing,
    };
    this.#running.put(running);
    let result: unknown;
    let isLater = false;
    const startedMs = monotonicMs();
    try {
      result = outside(() => where.run(inside, () => step.body(attempt)));
      isLater = isThenable(result);
    } catch (error) {
      return this.#afterOutput(running, () => this.#failed(running, error));
    } finally {
      this.#host.took(name, monotonicMs() - startedMs);
    }
    if (!isLater) return this.#afterOutput(running, () => this.#done(running, result));
    running.ended = this.#host.began(attempt.idempotencyKey);
    this.#armTimeout(running);
    void Promise.resolve(result).then(
      (value) => this.#afterOutput(running, () => this.#done(running, value)),
      (error: unknown) => this.#afterOutput(running, () => this.#failed(running, error)),
    );
  }

  /**
   * Ends an attempt whose body has ended, once the output that it left is written. A reader of the
   * run then gets all of it: nothing is written behind the end of a run.
   */
  #afterOutput(running: Running, end: () => void): void {
    const written = running.attempt.output?.close();
    if (written === undefined) return end();
    running.cancelTimer();
    void written.then(end);
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

  /** Ends a running attempt. False if it ended before, as after a timeout, or no longer matters. */
  #ends(running: Running): boolean {
    const { step } = running;
    if (this.#isOver || this.#running.get(step.call) !== running) return false;
    this.#running.take(step.call);
    running.cancelTimer();
    running.ended();
    running.inside.isStepOver = true;
    running.attempt.output?.fold();
    return true;
  }

  #done(running: Running, value: unknown): void {
    if (!this.#ends(running)) return;
    const { step, attempt } = running;
    const times = this.#timesOf(running);
    let encoded: Encoded | undefined;
    try {
      encoded = this.#host.encode(value);
    } catch (error) {
      if (isOfTheCodec(error)) return this.#host.broke(error);
      // The codec would refuse the same value again.
      encoded = this.#encoded(step, attempt.attempt, error);
      if (encoded !== undefined) this.#finish(step, "failed", encoded, times);
      return;
    }
    this.#finish(step, "completed", encoded, times);
  }

  #failed(running: Running, error: unknown): void {
    if (!this.#ends(running)) return;
    const { step, attempt } = running;
    const mayRetry = !isNonRetryable(error) && !attempt.isCancelled;
    const times = this.#timesOf(running);
    this.#recordFailure(step, attempt.attempt, { error, mayRetry }, times);
  }

  /** Read at the end of an attempt, before its value is encoded. */
  #timesOf({ began }: Running): BodyTimes {
    return { began, ended: this.#host.clock.now() };
  }

  #recordFailure(
    task: Task,
    attempt: number,
    { error, mayRetry }: { readonly error: unknown; readonly mayRetry: boolean },
    times: BodyTimes | undefined,
  ): void {
    const { clock, random } = this.#host;
    const stored = this.#encoded(task, attempt, error);
    if (stored === undefined) return;
    const pauseMs = mayRetry ? retryPauseMs(task.retry, attempt) : undefined;
    if (pauseMs === undefined) return this.#finish(task, "failed", stored, times);
    const retryAt = clock.now() + jittered(pauseMs, random());
    this.#pausing.set(task.call, { task, failures: attempt, retryAt, begun: 0 });
    const record: StepRecord = {
      kind: "stepAttemptFailed",
      name: task.name,
      ...(task.kind === "transaction" && { isTransaction: true }),
      attempt,
      retryAt,
      error: stored,
      call: task.call,
    };
    this.#host.record(record, times);
  }

  /** Undefined when nothing can be encoded, which has been reported. */
  #encoded({ name }: Task, attempt: number, error: unknown): Encoded | undefined {
    const at = { step: name, attempt: Math.max(attempt, 1) };
    try {
      return recorded(error, at, (stored) => this.#host.encode(stored));
    } catch (broken) {
      this.#host.broke(broken);
      return undefined;
    }
  }

  #finish(
    task: Task,
    outcome: "completed" | "failed",
    value: Encoded,
    times: BodyTimes | undefined,
  ): void {
    const { name, call, kind } = task;
    const record: StepRecord = {
      kind: `${kind}Finished`,
      name,
      inputHash: null,
      outcome,
      value,
      call,
    };
    this.#host.record(record, times);
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
    `Step "${name}" took longer than its timeout of ${timeoutMs} ms; its later result is not recorded.`,
    { step: name, timeoutMs },
  );
}
