import { durationMs } from "../model/time/durations.ts";
import { HoldfastError } from "../model/errors.ts";
import { givenSignal, optionsOf } from "../model/shape.ts";
import type { Database, WaitOptions } from "../sql/database.ts";
import { runsIn, type Operation, type StoreOperation, type Tx } from "../sql/operation.ts";

/**
 * A method of a store: the only way from a caller to an operation. Called, it
 * checks and encodes what it was given and runs its operation in a transaction
 * of its own. Prepared, it does the first half at once and gives the second as
 * a part of a transaction of yours, to be run, or run again, inside.
 *
 * @example
 * const append = log.append.prepare("order-42", 5, events);
 * await database.write("ship and bill", function* () {
 *   yield* append();
 *   yield* run(sql`UPDATE invoice SET state = 'sent' WHERE id = 42`);
 * });
 */
// The call signature has no comment of its own: it would replace the hover text of every page.
export interface Method<Args extends readonly unknown[], Out> {
  (...args: Args): Promise<Out>;
  /**
   * The same as a part of a transaction of one's own: checked and encoded now,
   * run inside. `signal` and `timeout` belong to that transaction and are
   * refused here. Running it a second time is a repetition of the same call.
   * Many parts decide by rows that they lock, and run only inside a write that
   * is `{ isolation: "readCommitted" }`; others are refused with
   * `ISOLATION_MISMATCH`, which says so.
   */
  prepare(...args: Args): () => Tx<Out>;
  /** Whether it may write. */
  readonly kind: "read" | "write";
  /** The name of its operation, as `stats` and hints of changes have it. */
  readonly operation: string;
}

/** What a caller's arguments come to. */
export interface Call<I> {
  readonly input: I;
  readonly wait: WaitOptions;
}

/**
 * Checks, encodes and completes what a caller gave; stands above the body of
 * its operation. Instants that are recorded are read here, those that are
 * judged in the body.
 */
type Given<C, Args extends readonly unknown[], I> = (context: C, ...args: Args) => Call<I>;

/** What a caller is shown of an operation's answer. What it throws refuses the call. */
type Shown<C, I, O, Out> = (context: C, output: O, input: I) => Out;

/** Makes a method of an operation; without `shown` its answer is what the caller sees. */
interface MakeMethod {
  <C extends InDatabase, Args extends readonly unknown[], I, O>(
    context: C,
    operation: StoreOperation<C, I, O>,
    given: Given<C, Args, I>,
  ): Method<Args, O>;
  <C extends InDatabase, Args extends readonly unknown[], I, O, Out>(
    context: C,
    operation: StoreOperation<C, I, O>,
    given: Given<C, Args, I>,
    shown: Shown<C, I, O, Out>,
  ): Method<Args, Out>;
}

/** A method that writes. */
export const writes: MakeMethod = makerOf("write");

/** A method that only reads. */
export const reads: MakeMethod = makerOf("read");

interface InDatabase {
  readonly database: Database;
}

function makerOf(kind: "read" | "write"): MakeMethod {
  return <C extends InDatabase, Args extends readonly unknown[], I>(
    context: C,
    operation: StoreOperation<C, I, unknown>,
    given: Given<C, Args, I>,
    shown?: Shown<C, I, unknown, unknown>,
  ): Method<Args, unknown> => methodOf(context, kind, operation(context), given, shown);
}

function methodOf<C extends InDatabase, Args extends readonly unknown[], I>(
  context: C,
  kind: "read" | "write",
  operation: Operation<I, unknown>,
  given: Given<C, Args, I>,
  shown: Shown<C, I, unknown, unknown> = (_, output) => output,
): Method<Args, unknown> {
  const { database } = context;
  const call = async (...args: Args): Promise<unknown> => {
    const { input, wait } = given(context, ...args);
    const output = await database[kind](operation, input, wait);
    return shown(context, output, input);
  };
  const prepare = (...args: Args): (() => Tx<unknown>) => {
    const { input, wait } = given(context, ...args);
    refuseWait(wait);
    // Not a generator itself: a call without `yield*` is to be noticed.
    return () => answered(operation(input), input);
  };
  function* answered(part: Tx<unknown>, input: I): Tx<unknown> {
    yield* runsIn(database);
    return shown(context, yield* part, input);
  }
  return Object.assign(call, { prepare, kind, operation: operation.name });
}

function refuseWait({ signal, timeout }: WaitOptions): void {
  if (signal === undefined && timeout === undefined) return;
  const option = signal === undefined ? "timeout" : "signal";
  throw new HoldfastError(
    "OPTION_INVALID",
    `A prepared call takes no ${option}: it waits for nothing itself. Give the ${option} to the write that runs it.`,
    { option },
  );
}

/**
 * The options of a method, apart from how long its caller waits. Options that
 * do not exist are refused.
 *
 * @throws HoldfastError `OPTION_INVALID`, `DURATION_INVALID`
 * @example const { options: { fence, key }, wait } = optionsAndWait(given, ["fence", "key"]);
 */
export function optionsAndWait<T extends WaitOptions>(
  given: T | undefined,
  names: readonly Exclude<keyof T & string, keyof WaitOptions>[],
): {
  readonly options: Omit<T, keyof WaitOptions>;
  readonly wait: WaitOptions;
} {
  const { signal, timeout, ...options } = optionsOf<T>(given, [...names, "signal", "timeout"]);
  givenSignal(signal);
  if (timeout !== undefined) durationMs(timeout, "timeout");
  return { options, wait: { signal, timeout } };
}

/** Of a method that takes no other options. @throws HoldfastError `OPTION_INVALID`, `DURATION_INVALID` */
export function onlyWait(given: WaitOptions | undefined): WaitOptions {
  return optionsAndWait<WaitOptions>(given, []).wait;
}
