import type { JsonSchema } from "../../model/json-schema/json-schema.ts";
import type { Duration } from "../../model/time/durations.ts";
import type { StartAt } from "../../model/time/instants.ts";
import type { Isolation } from "../../sql/isolation.ts";
import type { Tx } from "../../sql/operation.ts";
import type { DurableFunction, Signal } from "./definitions.ts";
import type { RetryOptions } from "./retries.ts";

/** The arguments after a function: its input, optional if the function takes none, then options. */
export type InputAnd<In, Options> =
  TakesNone<In> extends true
    ? [input?: undefined, options?: Options]
    : undefined extends In
      ? [input?: NoInfer<In>, options?: Options]
      : [input: NoInfer<In>, options?: Options];

/**
 * True for a function without input. A function that takes `any` has an input:
 * only `any` is in `void` and contains every type.
 */
export type TakesNone<In> = [unknown] extends [In] ? false : [In] extends [void] ? true : false;

/** One of many starts of a function. */
export type StartOf<In> = StartOptions &
  (undefined extends In ? { readonly input?: NoInfer<In> } : { readonly input: NoInfer<In> });

export interface CallOptions {
  /** The run ends as timed out if it has not ended by then. */
  readonly deadline?: Duration;
  readonly tags?: readonly string[];
  readonly concurrencyKey?: string;
}

/** Options of a start. */
export interface StartOptions extends CallOptions {
  /** Chosen by the caller, so that a repeated start finds the same run; defaults to a new `E_…`. */
  readonly id?: string;
  /** Defaults to `"now"`. */
  readonly startAt?: StartAt;
  /**
   * Short strings that travel with the run, such as `traceparent`, tenant or user: at most 16 entries, names up
   * to 64 and values up to 512 characters, stored in the clear. Everything that the run starts
   * inherits them. `ctx.start` with metadata of its own passes on only that.
   */
  readonly metadata?: Readonly<Record<string, string>>;
}

export interface StepOptions {
  /** Defaults to 5 retries, the first after 100 ms. */
  readonly retry?: RetryOptions;
  /** The time limit of one attempt. An attempt that exceeds it is aborted and counts as failed. */
  readonly timeout?: Duration;
  /**
   * Records each attempt before its body begins, so that `isRepeat` tells the body that it was
   * interrupted. It costs one commit. The option may be added and removed while runs are open.
   */
  readonly announced?: boolean;
}

export interface TransactionOptions {
  /**
   * `"serializable"`, the default, decides by one snapshot and is retried when others interfere.
   * `"readCommitted"` is for bodies that use parts of the stores, such as
   * `executions.signal.prepare(…)`. Its statements see what others have committed in between, so
   * lock the rows that you decide by with `lockRow`.
   */
  readonly isolation?: Isolation;
  /** For attempts that the database interrupted. Defaults to 5 retries, the first after 100 ms. */
  readonly retry?: RetryOptions;
}

/** The context of one attempt of a step. */
export interface StepContext {
  /** The number of the attempt, from 1. */
  readonly attempt: number;
  /**
   * True when this attempt began before and was interrupted: its work may be done, in part or
   * whole. In a retried run it is true of the first attempt if the step began in the failed run,
   * unless it failed there. Known only to steps that are `announced`, false for others.
   */
  readonly isRepeat: boolean;
  /** Aborted when the run is cancelled, the run loses its lock, or the attempt times out. */
  readonly abortSignal: AbortSignal;
  /**
   * The same for all attempts of this step, and different for every other step.
   * Pass it to services that take one. A run made by `retry` keeps the keys of
   * the failed run. A run made by `fork` has its own.
   */
  readonly idempotencyKey: string;
  /**
   * Shows a value to readers of the run's live output (`run.stream`), such as a token of a model. It
   * is no part of the record: it may be lost in a crash, and replay does not show it again. Returns
   * false if it was dropped: too much waits to be written, or the attempt is over.
   * @throws HoldfastError `NOT_SERIALIZABLE`, `VALUE_TOO_LARGE`
   * @example for await (const token of tokens) stream(token);
   */
  readonly stream: (chunk: unknown) => boolean;
}

/** A child that runs on its own and ends with its parent. */
export interface Child<out Out> {
  readonly id: string;
  /** Resolves with the child's result. @throws RunFailedError when the child did not complete */
  result(): Promise<Out>;
  /** Asks the child to end. Its result rejects once it has ended. */
  cancel(): void;
}

/** A started run that does not depend on its starter. */
export interface Detached {
  readonly id: string;
  /** True when the run existed already, with the same function and input. */
  readonly existed: boolean;
}

/** A question that an outside caller answers: a person, or another system. */
export interface External<out T> {
  /** The id of the question, for `holdfast.questions.answer`. */
  readonly id: string;
  /** The token for callers that may answer with `holdfast.resolve`; it cannot be guessed. */
  readonly token: string;
  /**
   * Resolves with the answer, or with undefined after the timeout.
   * @throws RunFailedError when the question was failed instead of answered
   */
  result(): Promise<T>;
}

/** Options of `ctx.external`. Replay does not compare them: a question that is recorded stays as it was asked. */
export interface ExternalOptions<T = unknown> {
  /** The question itself, for the people who answer it: a text, or any value that a page can show. */
  readonly about?: unknown;
  /**
   * Checks each answer before it is accepted. A JSON Schema, or a schema that converts itself to
   * one, such as those of Zod and ArkType. The code receives the answer as it was given.
   */
  readonly schema?: AnswerSchema<T> | JsonSchema;
  /** The time in which it can be answered. By default, it stays open until the run ends. */
  readonly timeout?: Duration;
  /** Find the question in `holdfast.questions.list`. */
  readonly tags?: readonly string[];
}

/** The part of Standard JSON Schema that is used here. `In` is the type of an answer. */
interface AnswerSchema<in out In> {
  readonly "~standard": {
    readonly jsonSchema: {
      readonly input: (options: { readonly target: "draft-2020-12" }) => JsonSchema;
    };
    readonly types?: { readonly input: In; readonly output: unknown } | undefined;
  };
}

/** Children whose results are taken in the order in which they arrive. */
export interface JoinSet<Out> extends AsyncIterable<Out> {
  spawn<In, O extends Out>(
    fn: DurableFunction<In, O>,
    ...args: InputAnd<In, CallOptions>
  ): Child<O>;
  /**
   * Resolves with the next result, or with undefined once all were taken. Use
   * `for await` for children that return nothing.
   * @throws RunFailedError when that child did not complete
   */
  next(): Promise<Out | undefined>;
  /** Takes the next result if one has arrived; does not wait. */
  try():
    | { readonly kind: "found"; readonly value: Out }
    | { readonly kind: "pending" }
    | { readonly kind: "allTaken" };
  /** Cancels the children that have not ended, newest first, and waits for them. */
  close(): Promise<void>;
}

/**
 * Log lines for people. `onEvent` of `openHoldfast` gets them, and the run
 * keeps them with its step and attempt. Replay does not write them again. After
 * a crash, lines after the last recorded event may appear twice.
 */
export interface RunLog {
  debug(message: string, data?: unknown): void;
  info(message: string, data?: unknown): void;
  warn(message: string, data?: unknown): void;
  error(message: string, data?: unknown): void;
}

/**
 * The operations that a workflow's code may use. Each call is recorded. When
 * the code runs again, the record answers the call. `Next` is the input of the
 * next pass; a helper that calls `continueWith` names it to have it checked.
 */
export interface WorkflowContext<Next = unknown> {
  /** The id of this run. */
  readonly id: string;
  /** The metadata that the run was started with, or inherited. It cannot be changed. */
  readonly metadata: Readonly<Record<string, string>>;
  /** Aborted once a caller asks the run to cancel. */
  readonly abortSignal: AbortSignal;
  readonly log: RunLog;

  /**
   * Runs another function as a child, on any worker and with its own retries,
   * and waits for its result.
   * @throws RunFailedError when the child failed, was cancelled or timed out
   * @throws HoldfastError `INPUT_INVALID` when its schema refuses the input
   * @example const payment = await ctx.call(charge, order);
   */
  call<In, Out>(fn: DurableFunction<In, Out>, ...args: InputAnd<In, CallOptions>): Promise<Out>;
  /**
   * Starts a child without waiting. A child never outlives its parent: it is
   * cancelled when the parent ends.
   */
  spawn<In, Out>(fn: DurableFunction<In, Out>, ...args: InputAnd<In, CallOptions>): Child<Out>;
  /**
   * Starts an independent run, which outlives this one.
   * @throws HoldfastError `EXECUTION_EXISTS` when the id is taken by another run
   */
  start<In, Out>(
    fn: DurableFunction<In, Out>,
    ...args: InputAnd<In, StartOptions>
  ): Promise<Detached>;
  /**
   * Runs a function in this process and records its result. A recorded step
   * never runs again; an interrupted step does. Inside the function, calls of
   * `ctx` are refused.
   * @example const label = await ctx.step("print label", () => printer.print(order));
   * @example const rate = await ctx.step("rate", { retry: { maxRetries: 2 }, timeout: "5s" }, ({ abortSignal }) => getRate(abortSignal));
   */
  step<T>(name: string, body: StepBody<T>): Promise<Awaited<T>>;
  step<T>(name: string, options: StepOptions, body: StepBody<T>): Promise<Awaited<T>>;
  /**
   * Writes to your own tables in the transaction that records the call, so the
   * writes happen exactly once. If the database interrupts it, it is retried
   * like a step. An error that the body throws is its outcome. Parts that the stores
   * prepared run inside `{ isolation: "readCommitted" }`.
   * @throws HoldfastError `EXECUTION_CHANGED_INSIDE` when the body ends, cancels or pauses this run
   * @example
   * await ctx.transaction("book", function* () {
   *   yield* run(sql`UPDATE account SET cents = cents - 500 WHERE id = 'ada'`);
   * });
   */
  transaction<T>(name: string, body: () => Tx<T>): Promise<T>;
  transaction<T>(name: string, options: TransactionOptions, body: () => Tx<T>): Promise<T>;
  /** Waits for a duration, from milliseconds to years. It holds no worker place and no connection. */
  sleep(time: Duration): Promise<void>;
  /** Waits until an instant: a Date, or milliseconds since 1970. */
  sleepUntil(instant: Date | number): Promise<void>;
  /**
   * Waits for a message. Messages that arrived earlier are kept, oldest first.
   * With a timeout it resolves with undefined when no message arrives in time.
   * @example const reply = await ctx.receive(approval, { timeout: "1 day" });
   */
  receive<T>(signal: Signal<T, never>): Promise<T>;
  receive<T>(
    signal: Signal<T, never>,
    options: { readonly timeout: Duration },
  ): Promise<T | undefined>;
  /**
   * Asks a question that a person or another system answers, by its id or its token. The answer
   * is checked by the schema before it is accepted. The question ends with the run.
   * @example
   * const question = ctx.external<{ approve: boolean }>({
   *   about: `Refund ${order.id}?`,
   *   schema: { type: "object", properties: { approve: { type: "boolean" } }, required: ["approve"] },
   *   timeout: "3 days",
   * });
   * const answer = await question.result(); // undefined after three days
   */
  external<T = unknown>(
    options: ExternalOptions<T> & { readonly timeout: Duration },
  ): External<T | undefined>;
  external<T = unknown>(options?: ExternalOptions<T>): External<T>;
  /**
   * Creates a set of children whose results are taken as they arrive. The name
   * is part of their ids.
   * @throws HoldfastError `JOIN_SET_EXISTS` when another set of the run has the name
   */
  joinSet<Out = unknown>(name?: string): JoinSet<Out>;

  /**
   * Returns the run's own time in milliseconds since 1970, the same on replay: the
   * time of the last delivery to it; before the first delivery, the time at which it was due.
   */
  now(): number;
  /** Returns a random number from 0 up to, but not including, 1: the same on replay. */
  random(): number;
  /** Returns a UUID that differs for each call and run, and is the same on replay. */
  uuid(): string;
  /** Publishes a value that readers of the run see, such as a percentage. */
  setProgress(value: unknown): void;
  /**
   * True for runs that reach this call for the first time, and false for runs that passed
   * it before it was written. Use it to keep the old code for those runs.
   * @example if (ctx.patched("send-mail-too")) await ctx.call(sendMail, order);
   */
  patched(id: string): boolean;
  /**
   * Ends this pass and starts the next under the same id, with an empty
   * history: `return ctx.continueWith(next)`. The next pass gets this input; a
   * schema does not check it again.
   */
  continueWith(input: Next): never;
}

export type StepBody<T> = (step: StepContext) => T;
