import { durationMs } from "../model/time/durations.ts";
import { HoldfastError } from "../model/errors.ts";
import { givenSignal, optionsOf } from "../model/shape.ts";
import type { Database, WaitOptions } from "../sql/database.ts";
import { runsIn, type Operation, type StoreOperation, type Tx } from "../sql/operation.ts";
import type { PayloadSeal } from "./payload-seal.ts";

/**
 * A method of a store: the only way from a caller to an operation. A direct call checks and encodes
 * its arguments, and runs the operation in a transaction of its own. `prepare` checks and encodes
 * at once, and returns the operation as a part of your transaction. That part may run again.
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
   * Prepares the same call as a part of your own transaction: checked and encoded now, run inside.
   * `signal` and `timeout` belong to that transaction and are refused here. A second run of the
   * part repeats the same call.
   * Many parts decide by rows that they lock. They run only inside a write that is `{ isolation:
   * "readCommitted" }`; others are refused with `ISOLATION_MISMATCH`, whose message names the fix.
   * A read of one thing locks it there, so its answer is still current when the write commits; a
   * missing thing whose writes would replace one that another caller wrote is still missing. A read
   * of many things is refused in every write: call it before.
   */
  prepare(...args: Args): () => Tx<Out>;
  /** Tells whether the method may write. */
  readonly kind: "read" | "write";
  /** The name of its operation, as used by `stats` and hints of changes. */
  readonly operation: string;
}

/** The validated input of a call. */
export interface Call<I> {
  readonly input: I;
  readonly wait: WaitOptions;
}

/**
 * Checks, encodes and completes a caller's arguments. Such a function stands above the body of its
 * operation. It reads instants that are recorded; the body reads instants that are compared.
 */
type Given<C, Args extends readonly unknown[], I> = (context: C, ...args: Args) => Call<I>;

/** Maps the result of an operation to what the caller sees. If it throws, the call is refused. */
type Shown<C, I, O, Out> = (context: C, output: O, input: I) => Out;

/** Makes a method of an operation. Without `shown`, the caller sees the operation's result. */
interface MakeMethod<Root = unknown> {
  <C extends InDatabase, Args extends readonly unknown[], I extends Root, O>(
    context: C,
    operation: StoreOperation<C, I, O>,
    given: Given<C, Args, I>,
  ): Method<Args, O>;
  <C extends InDatabase, Args extends readonly unknown[], I extends Root, O, Out>(
    context: C,
    operation: StoreOperation<C, I, O>,
    given: Given<C, Args, I>,
    shown: Shown<C, I, O, Out>,
  ): Method<Args, Out>;
}

/**
 * Keeps the rows that a prepared part reads current until a surrounding readCommitted write
 * commits.
 */
type Lock<Root> = (input: Root) => Tx<unknown>;

/** A method that writes: its operation locks the rows that it decides by. */
export const writes: MakeMethod = makerOf("write", nothingToLock);

/** A method that reads many things, which no lock can cover. It is refused as part of a write. */
export const reads: MakeMethod = makerOf("read", undefined);

/**
 * A method that reads one thing. As part of a write it first locks the row that every change of
 * that thing locks too. So the write comes before or after such a change. A missing row cannot be
 * locked. Where its creation would replace what another caller has created, the lock takes its name;
 * elsewhere the creation finds the row.
 */
export function readsLocking<Root>(lock: Lock<Root>): MakeMethod<Root> {
  return makerOf("read", lock);
}

/** The lock of reads whose answer never changes. Each page says why. */
export function* nothingToLock(): Tx<void> {}

interface InDatabase {
  readonly database: Database;
  readonly seal: PayloadSeal;
}

function makerOf<Root>(kind: "read" | "write", lock: Lock<Root> | undefined): MakeMethod<Root> {
  return <C extends InDatabase, Args extends readonly unknown[], I extends Root>(
    context: C,
    operation: StoreOperation<C, I, unknown>,
    given: Given<C, Args, I>,
    shown: Shown<C, I, unknown, unknown> = (_, output) => output,
  ): Method<Args, unknown> =>
    methodOf(context, { kind, operation: operation(context), lock, given, shown });
}

interface MethodParts<C, Args extends readonly unknown[], I> {
  readonly kind: "read" | "write";
  readonly operation: Operation<I, unknown>;
  readonly lock: Lock<I> | undefined;
  readonly given: Given<C, Args, I>;
  readonly shown: Shown<C, I, unknown, unknown>;
}

function methodOf<C extends InDatabase, Args extends readonly unknown[], I>(
  context: C,
  { kind, operation, lock, given, shown }: MethodParts<C, Args, I>,
): Method<Args, unknown> {
  const { database, seal } = context;
  const inReadsOnly = lock === undefined ? operation.name : undefined;
  const call = async (...args: Args): Promise<unknown> => {
    const before = seal.uses;
    const { input, wait } = given(context, ...args);
    const called = seal.knowing(operation, kind, seal.uses > before);
    const output = await database[kind](called, input, wait);
    return shown(context, output, input);
  };
  const prepare = (...args: Args): (() => Tx<unknown>) => {
    const before = seal.uses;
    const { input, wait } = given(context, ...args);
    const hasUsed = seal.uses > before;
    refuseWait(wait);
    // Not a generator itself, so that a call without `yield*` is noticed.
    return () => answered(operation(input), input, hasUsed);
  };
  function* answered(part: Tx<unknown>, input: I, hasUsed: boolean): Tx<unknown> {
    const isolation = yield* runsIn(database, inReadsOnly);
    if (!seal.isKnown(kind)) yield* seal.learn(kind, hasUsed);
    else if (hasUsed) seal.throwRefusal();
    // In a serializable write the operation is refused next.
    if (lock !== undefined && isolation === "readCommitted") yield* lock(input);
    return shown(context, yield* part, input);
  }
  return Object.assign(call, { prepare, kind, operation: operation.name });
}

function refuseWait({ signal, timeout }: WaitOptions): void {
  if (signal === undefined && timeout === undefined) return;
  const option = signal === undefined ? "timeout" : "signal";
  throw new HoldfastError(
    "OPTION_INVALID",
    `A prepared call takes no ${option}: it does not wait itself. Pass the ${option} to the write that runs it.`,
    { option },
  );
}

/**
 * Separates the options of a method from its wait options. Unknown options are refused.
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

/**
 * Checks the options of a method that takes only wait options.
 * @throws HoldfastError `OPTION_INVALID`, `DURATION_INVALID`
 */
export function onlyWait(given: WaitOptions | undefined): WaitOptions {
  return optionsAndWait<WaitOptions>(given, []).wait;
}
