import { HoldfastError } from "../../model/errors.ts";
import { parseFunctionName, type FunctionName } from "../../model/ids/function-name.ts";
import { parseSignalName } from "../../model/ids/own-signal.ts";
import { safely } from "../../model/safely.ts";
import { checkedCount, givenInvalid, optionsOf, readGiven } from "../../model/shape.ts";
import { durationMs, type Duration } from "../../model/time/durations.ts";
import type { RetryPolicy } from "../../model/time/retry-policy.ts";
import type { WhenPoisoned } from "../../model/execution/event.ts";
import { checkedWhenPoisoned } from "../../stores/execution/lock/limits.ts";
import type { ActivityContext } from "./activity-context.ts";
import { retryPolicyOf, type RetryOptions } from "./retries.ts";
import { givenSchema, type Schema } from "./schema.ts";
import type { WorkflowContext } from "./workflow-context.ts";

/** Options that workflows and activities share. */
interface FunctionOptions {
  /** The most runs at once, over all processes. A waiting run does not count. */
  readonly concurrency?: number;
  /** The most runs at once for each concurrency key. */
  readonly concurrencyPerKey?: number;
  /**
   * The time for which a started run is kept after its end, with all runs below
   * it. Workers that serve the function remove it soon afterwards. A caller that
   * then asks for its result gets `EXECUTION_NOT_FOUND`. Defaults to
   * forever. Children are kept as long as the run that called them.
   * @example workflow("poll", { keep: "30 days", keepFailed: "365 days" }, async (ctx) => …)
   */
  readonly keep?: Duration;
  /** The same for runs that failed or timed out; defaults to `keep`. */
  readonly keepFailed?: Duration;
}

export interface WorkflowOptions extends FunctionOptions {
  /** The longest time that a cancelled run may take to clean up; defaults to 5 minutes. */
  readonly cleanupTimeout?: Duration;
  /**
   * The effect of five deaths of processes that ran this run and nothing else: the run is parked
   * for a person (`"park"`, the default), or cancelled, so that its cleanup runs (`"cancel"`).
   */
  readonly whenPoisoned?: WhenPoisoned;
}

export interface ActivityOptions extends FunctionOptions {
  readonly retry?: RetryOptions;
  /** Limits one attempt. By default an attempt may last as long as its process. */
  readonly timeout?: Duration;
}

/**
 * A function whose code may stop anywhere and resume elsewhere. Made by `workflow`. It cannot be
 * called: start it with `holdfast.start(fn, input)`, and in a run with `ctx.call(fn, input)`.
 */
export interface Workflow<in In, out Out> {
  readonly kind: "workflow";
  readonly name: string;
  readonly [types]?: (input: In) => Out;
}

/**
 * A function with side effects, retried until it succeeds. Made by `activity`. It cannot be called:
 * a workflow runs it with `ctx.call(fn, input)`, and `holdfast.start(fn, input)` runs it alone.
 */
export interface Activity<in In, out Out> {
  readonly kind: "activity";
  readonly name: string;
  readonly [types]?: (input: In) => Out;
}

/** Exists only for the compiler. */
declare const types: unique symbol;

/** A workflow or an activity. */
export type DurableFunction<In, Out> = Workflow<In, Out> | Activity<In, Out>;

/**
 * A message that a caller sends to a run, and that the run receives with
 * `ctx.receive`. The sender passes an `In`, which a schema turns into a `T`. Made
 * by `signal`.
 */
export interface Signal<out T, in In = T> {
  readonly name: string;
  readonly [types]?: (sent: In) => T;
}

/** A function as the runtime knows it. */
export interface Definition {
  readonly kind: "workflow" | "activity";
  readonly name: FunctionName;
  readonly body: (ctx: never, input: unknown) => unknown;
  readonly schema: Schema | undefined;
  readonly concurrency: number | undefined;
  readonly concurrencyPerKey: number | undefined;
  readonly retry: RetryPolicy;
  readonly timeoutMs: number | undefined;
  readonly cleanupMs: number;
  readonly whenPoisoned: WhenPoisoned;
  /** Undefined: keep forever. */
  readonly keepMs: number | undefined;
  readonly keepFailedMs: number | undefined;
}

/** True if places of a function are counted over all workers. */
export function hasLimit({ concurrency, concurrencyPerKey }: Definition): boolean {
  return concurrency !== undefined || concurrencyPerKey !== undefined;
}

// Not a private field: an app may have two copies of the package, one bundled.
const definition: unique symbol = Symbol.for("holdfast.definition") as never;
const schemaOf: unique symbol = Symbol.for("holdfast.signal") as never;

type Body<Ctx, In, Out> = (ctx: Ctx, input: In) => Promise<Out> | Out;

/**
 * Makes a workflow: an async function that survives the death of its process.
 * All its side effects go through `ctx`. The rest of its code must do the
 * same each time it runs with the same recorded results.
 *
 * @throws HoldfastError `NAME_INVALID`, `OPTION_INVALID`, `DURATION_INVALID`
 * @example
 * const greet = workflow("greet", async (ctx, name: string) => {
 *   const text = await ctx.step("ask", () => fetchGreeting(name));
 *   await ctx.sleep("1 day");
 *   return text;
 * });
 */
export function workflow<Out, In = void>(
  name: string,
  body: Body<WorkflowContext<In>, In, Out>,
): Workflow<In, Out>;
export function workflow<Out, In, Parsed>(
  name: string,
  options: WorkflowOptions & { readonly input: Schema<In, Parsed> },
  body: Body<WorkflowContext<Parsed>, Parsed, Out>,
): Workflow<In, Out>;
export function workflow<Out, In = void>(
  name: string,
  options: WorkflowOptions,
  body: Body<WorkflowContext<In>, In, Out>,
): Workflow<In, Out>;
export function workflow(name: string, ...rest: unknown[]): never {
  return defined("workflow", name, rest) as never;
}

/**
 * Makes an activity: a function with side effects, which any worker runs and
 * retries. Its result is recorded, and a completed activity never runs again.
 * An interrupted attempt is repeated, so pass `ctx.idempotencyKey` to services
 * that take one.
 *
 * @throws HoldfastError `NAME_INVALID`, `OPTION_INVALID`, `DURATION_INVALID`
 * @example
 * const charge = activity("billing/charge", { retry: { maxRetries: 3 }, timeout: "30s" },
 *   async (ctx, order: Order) => payments.charge(order, { signal: ctx.abortSignal }));
 */
export function activity<Out, In = void>(
  name: string,
  body: Body<ActivityContext, In, Out>,
): Activity<In, Out>;
export function activity<Out, In, Parsed>(
  name: string,
  options: ActivityOptions & { readonly input: Schema<In, Parsed> },
  body: Body<ActivityContext, Parsed, Out>,
): Activity<In, Out>;
export function activity<Out, In = void>(
  name: string,
  options: ActivityOptions,
  body: Body<ActivityContext, In, Out>,
): Activity<In, Out>;
export function activity(name: string, ...rest: unknown[]): never {
  return defined("activity", name, rest) as never;
}

/**
 * Names a message that callers can send to runs. A schema checks each value
 * that is sent. A signal that is sent without a value is received as `true`.
 *
 * @throws HoldfastError `NAME_INVALID`, `OPTION_INVALID`
 * @example const approval = signal<{ ok: boolean }>("approval");
 */
export function signal(name: string): Signal<true>;
export function signal<T>(name: string): Signal<T>;
export function signal<In, Parsed>(name: string, schema: Schema<In, Parsed>): Signal<Parsed, In>;
export function signal(name: string, schema?: Schema): Signal<never, unknown> {
  return Object.freeze({
    name: parseSignalName(name),
    [schemaOf]: givenSchema("schema", schema),
  });
}

const defaultCleanup: Duration = "5 minutes";
const sharedNames = ["input", "concurrency", "concurrencyPerKey", "keep", "keepFailed"] as const;
const optionNames = {
  workflow: [...sharedNames, "cleanupTimeout", "whenPoisoned"],
  activity: [...sharedNames, "retry", "timeout"],
} as const;

type AllOptions = WorkflowOptions & ActivityOptions & { readonly input?: Schema };

function defined(kind: Definition["kind"], name: string, rest: readonly unknown[]): object {
  const [given, body] = rest.length < 2 ? [undefined, rest[0]] : rest;
  const options = optionsOf<AllOptions>(given as AllOptions | undefined, optionNames[kind]);
  const { cleanupTimeout = defaultCleanup, keep, keepFailed = keep } = options;
  if (typeof body !== "function")
    throw givenInvalid(
      `${kind} ${name}`,
      `a function: ${kind}("name", async (ctx, input) => …)`,
      body,
    );
  const made: Definition = {
    kind,
    name: parseFunctionName(name),
    body: body as Definition["body"],
    schema: givenSchema("input", options.input),
    concurrency: countOf("concurrency", options.concurrency),
    concurrencyPerKey: countOf("concurrencyPerKey", options.concurrencyPerKey),
    retry: retryPolicyOf(options.retry),
    timeoutMs: msOf("timeout", options.timeout),
    cleanupMs: durationMs(cleanupTimeout, "cleanupTimeout"),
    whenPoisoned: checkedWhenPoisoned(options.whenPoisoned),
    keepMs: msOf("keep", keep),
    keepFailedMs: msOf("keepFailed", keepFailed),
  };
  return Object.freeze({ kind, name: made.name, [definition]: made });
}

function countOf(name: string, count: number | undefined): number | undefined {
  return count === undefined ? undefined : checkedCount(name, count, { min: 1 });
}

function msOf(name: string, time: Duration | undefined): number | undefined {
  return time === undefined ? undefined : durationMs(time, name);
}

/** Makes another function with the same name and options. */
export function activityLike(made: Definition, body: Definition["body"], more: object): object {
  const { kind, name } = made;
  return Object.freeze({
    ...more,
    kind,
    name,
    [definition]: { ...made, body },
  });
}

/** Returns the definition of a workflow or an activity. @throws HoldfastError `OPTION_INVALID` */
export function definitionOf(given: unknown, place: string): Definition {
  const made =
    typeof given === "object" && given !== null
      ? readGiven(place, () => (given as { readonly [definition]?: Definition })[definition])
      : undefined;
  if (made !== undefined) return made;
  throw givenInvalid(place, "the result of workflow() or activity()", given);
}

/** True for a result of `workflow` or `activity`, from this or another copy of the package. */
export function isDurableFunction(given: unknown): given is DurableFunction<never, unknown> {
  if (typeof given !== "object" || given === null) return false;
  return safely(() => definition in given, false);
}

/** @throws HoldfastError `OPTION_INVALID` */
export function signalOf(given: unknown): {
  readonly name: string;
  readonly schema: Schema | undefined;
} {
  const found = readGiven("signal", () => {
    if (typeof given !== "object" || given === null || !(schemaOf in given)) return undefined;
    const { name, [schemaOf]: schema } = given as {
      readonly name: string;
      readonly [schemaOf]: Schema | undefined;
    };
    return { name, schema };
  });
  if (found !== undefined) return found;
  throw givenInvalid("signal", "the result of signal()", given);
}

/**
 * Collects functions by name and skips all other values.
 * @throws HoldfastError `FUNCTION_CONFLICT` when two different functions share a name.
 */
export function definitionsOf(
  functions: readonly unknown[],
  isOther: (given: unknown) => boolean = () => false,
): ReadonlyMap<string, Definition> {
  const byName = new Map<string, Definition>();
  functions.forEach((given, index) => {
    if (isOther(given)) return;
    const made = definitionOf(given, `functions[${index}]`);
    const before = byName.get(made.name);
    if (before !== undefined && before !== made) throw functionConflict(made);
    byName.set(made.name, made);
  });
  return byName;
}

export function functionConflict({ kind, name }: Definition): HoldfastError {
  return new HoldfastError(
    "FUNCTION_CONFLICT",
    `Two different functions named "${name}" were passed to work(). ` +
      `A name identifies the code of existing runs, so each ${kind} needs its own. Rename one of them.`,
    { name },
  );
}
