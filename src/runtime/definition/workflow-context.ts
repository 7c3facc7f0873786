import type { Duration } from "../../model/time/durations.ts";
import type { StartAt } from "../../model/time/instants.ts";
import type { Tx } from "../../sql/operation.ts";
import type { DurableFunction, Signal } from "./definitions.ts";
import type { RetryOptions } from "./retries.ts";

/** The input of a function, which may be left out when it takes none, and then options. */
export type InputAnd<In, Options> =
  TakesNone<In> extends true
    ? [input?: undefined, options?: Options]
    : undefined extends In
      ? [input?: NoInfer<In>, options?: Options]
      : [input: NoInfer<In>, options?: Options];

/** Whether a function has no input. One that takes `any` has: that alone is in `void` and has all in it. */
export type TakesNone<In> = [unknown] extends [In] ? false : [In] extends [void] ? true : false;

/** One of many starts of a function. */
export type StartOf<In> = StartOptions &
  (undefined extends In ? { readonly input?: NoInfer<In> } : { readonly input: NoInfer<In> });

export interface CallOptions {
  /** It ends as timed out when it is not done by then. */
  readonly deadline?: Duration;
  readonly tags?: readonly string[];
  readonly concurrencyKey?: string;
}

/** What `start` can be told. */
export interface StartOptions extends CallOptions {
  /** Chosen by the caller, so that starting twice is starting once; defaults to a new `E_…`. */
  readonly id?: string;
  /** Defaults to `"now"`. */
  readonly startAt?: StartAt;
}

export interface StepOptions {
  /** Defaults to 5 retries, the first after 100 ms. */
  readonly retry?: RetryOptions;
  /** Bounds one attempt, which is then aborted and counts as failed. */
  readonly timeout?: Duration;
}

/** What the body of a step is given. */
export interface StepContext {
  /** From 1 on. */
  readonly attempt: number;
  /** Aborted when the run is cancelled, loses its lock, or the attempt has timed out. */
  readonly abortSignal: AbortSignal;
  /** The same for all attempts of this step, and no other's: for services that take one. */
  readonly idempotencyKey: string;
}

/** A child that runs on its own and ends with its parent. */
export interface Child<out Out> {
  readonly id: string;
  /** What it returned. @throws RunFailedError when it did not complete */
  result(): Promise<Out>;
  /** Asks it to end. Its result rejects once it has. */
  cancel(): void;
}

/** A run that was started and goes its own way. */
export interface Detached {
  readonly id: string;
  /** True when it was there already, with the same function and input. */
  readonly existed: boolean;
}

/** Something that somebody outside resolves with `holdfast.resolve(token, value)`. */
export interface External<out T> {
  /** For those who may resolve it; nobody can guess it. */
  readonly token: string;
  result(): Promise<T>;
}

/** Children whose results are taken in the order in which they come. */
export interface JoinSet<Out> extends AsyncIterable<Out> {
  spawn<In, O extends Out>(
    fn: DurableFunction<In, O>,
    ...args: InputAnd<In, CallOptions>
  ): Child<O>;
  /** The next result, undefined when all were taken; children that return nothing are told apart by `for await`. @throws RunFailedError when that child did not complete */
  next(): Promise<Out | undefined>;
  /** The next result if it is there; does not wait. */
  try():
    | { readonly kind: "found"; readonly value: Out }
    | { readonly kind: "pending" }
    | { readonly kind: "allTaken" };
  /** Cancels what has not ended, newest first, and waits for it. */
  close(): Promise<void>;
}

/**
 * Lines for people: told to `onEvent` of `openHoldfast` and kept with the run,
 * with its step and attempt. Replay does not write them again; those behind
 * the last thing recorded may come twice after a crash.
 */
export interface RunLog {
  debug(message: string, data?: unknown): void;
  info(message: string, data?: unknown): void;
  warn(message: string, data?: unknown): void;
  error(message: string, data?: unknown): void;
}

/**
 * What the code of a workflow does the world with. Each call is recorded;
 * when the code is run again, it is answered from the record. `Next` is what
 * its next pass is given; helpers that call `continueWith` name it to have it
 * checked.
 */
export interface WorkflowContext<Next = unknown> {
  /** Of this run. */
  readonly id: string;
  /** Aborted once the run is asked to cancel. */
  readonly abortSignal: AbortSignal;
  readonly log: RunLog;

  /**
   * Runs another function as a child, on any worker and with its own retries,
   * and waits for its result.
   * @throws RunFailedError when it failed, was cancelled or timed out
   * @throws HoldfastError `INPUT_INVALID` when its schema refuses the input
   * @example const payment = await ctx.call(charge, order);
   */
  call<In, Out>(fn: DurableFunction<In, Out>, ...args: InputAnd<In, CallOptions>): Promise<Out>;
  /** Begins a child without waiting. A child never outlives its parent: it is cancelled when that ends. */
  spawn<In, Out>(fn: DurableFunction<In, Out>, ...args: InputAnd<In, CallOptions>): Child<Out>;
  /**
   * Starts a run of its own, which outlives this one.
   * @throws HoldfastError `EXECUTION_EXISTS` when the id is taken by another run
   */
  start<In, Out>(
    fn: DurableFunction<In, Out>,
    ...args: InputAnd<In, StartOptions>
  ): Promise<Detached>;
  /**
   * Runs a function here and records what it returns: once recorded, it never
   * runs again. Interrupted, it does. Calls of `ctx` inside are refused.
   * @example const label = await ctx.step("print label", () => printer.print(order));
   * @example const rate = await ctx.step("rate", { retry: { maxRetries: 2 }, timeout: "5s" }, ({ abortSignal }) => getRate(abortSignal));
   */
  step<T>(name: string, body: StepBody<T>): Promise<Awaited<T>>;
  step<T>(name: string, options: StepOptions, body: StepBody<T>): Promise<Awaited<T>>;
  /**
   * Writes to your own tables in the transaction that records it: it happens
   * exactly once.
   * @example
   * await ctx.transaction("book", function* () {
   *   yield* run(sql`UPDATE account SET cents = cents - 500 WHERE id = 'ada'`);
   * });
   */
  transaction<T>(name: string, body: () => Tx<T>): Promise<T>;
  /** Waits without holding anything, for milliseconds or years. */
  sleep(time: Duration): Promise<void>;
  sleepUntil(instant: Date | number): Promise<void>;
  /**
   * Waits for a message; those that came before are kept, oldest first. With
   * a timeout it gives undefined when none came in time.
   * @example const reply = await ctx.receive(approval, { timeout: "1 day" });
   */
  receive<T>(signal: Signal<T, never>): Promise<T>;
  receive<T>(
    signal: Signal<T, never>,
    options: { readonly timeout: Duration },
  ): Promise<T | undefined>;
  /** Something that somebody outside resolves, who is given its token. */
  external<T = unknown>(): External<T>;
  /**
   * Children whose results are taken as they come. A name is part of their ids.
   * @throws HoldfastError `JOIN_SET_EXISTS` when another set of the run has it
   */
  joinSet<Out = unknown>(name?: string): JoinSet<Out>;

  /** The time, as far as the run knows: that of the last thing delivered to it, at first when it was due. */
  now(): number;
  /** At least 0 and below 1, the same when run again. */
  random(): number;
  /** Different for each call and run, the same when run again. */
  uuid(): string;
  /** Shows a value to those who look at the run. */
  setProgress(value: unknown): void;
  /**
   * True for runs that get here for the first time: lets new code stand beside
   * old while runs of both go on.
   * @example if (ctx.patched("send-mail-too")) await ctx.call(sendMail, order);
   */
  patched(id: string): boolean;
  /**
   * Ends this pass and begins the next under the same id, with an empty
   * history: `return ctx.continueWith(next)`. It is what the code is given
   * then; a schema is not asked again.
   */
  continueWith(input: Next): never;
}

export type StepBody<T> = (step: StepContext) => T;
