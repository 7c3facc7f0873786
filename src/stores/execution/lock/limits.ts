import { parseFunctionName, type FunctionName } from "../../../model/ids/function-name.ts";
import type { WhenPoisoned } from "../../../model/execution/event.ts";
import type { PlaceDebt } from "../../../model/execution/place-debt.ts";
import type { RetryPolicy } from "../../../model/time/retry-policy.ts";
import { checkedCount, draftOf, givenInvalid, givenList } from "../../../model/shape.ts";
import { lockRow } from "../../../sql/dialect.ts";
import { row, rows, run, type Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { checkedRetry } from "../checks.ts";

/**
 * Limits per function and per concurrency key, counted over all processes.
 *
 *   hold the row of each limited function, in the order of names: one transaction counts at a time
 *   → count locked executions by function and key
 *   → `lockPending` takes as many as there are places
 *
 * A waiting run takes no place, even while its worker keeps it in memory. The count is therefore a
 * range of one index and reads no sleeper. A release announces `placeFreed`, for which only workers
 * with limits wait (`wait.ts`).
 */

/**
 * The maximum numbers of locked executions, counted over all processes. Waiting executions are not
 * counted.
 */
export interface FunctionLimits {
  readonly concurrencyMax?: number | undefined;
  /**
   * The maximum for one concurrency key of one function. Executions without a key are not counted.
   */
  readonly perKeyMax?: number | undefined;
}

export interface LimitedFunction extends FunctionLimits {
  readonly name: FunctionName;
  readonly load?: number | undefined;
  readonly debt?: PlaceDebt | undefined;
}

/** A function that a worker serves, with its limits and its retry policy. */
export interface FunctionDraft extends FunctionLimits {
  readonly name: string;
  /** Defaults to the retry policy of the call. */
  readonly retry?: RetryPolicy;
  /**
   * The number of its executions that the caller already runs: functions with less come first.
   * Defaults to 0.
   */
  readonly load?: number;
  /**
   * The number of places given to others since a new run last had its turn, and since a begun run
   * last had its turn. Three are worth a turn. Defaults to none.
   */
  readonly debt?: PlaceDebt;
  /** The effect of a conviction on its workflows; defaults to `"park"`. */
  readonly whenPoisoned?: WhenPoisoned;
}

/** A function that may be locked, with its limits and its retry policy, if any. */
export interface ServedFunction extends LimitedFunction {
  readonly retry?: RetryPolicy;
  readonly whenPoisoned?: "cancel";
}

/** The distinct functions, each with the stricter of its limits. @throws HoldfastError `NAME_INVALID`, `OPTION_INVALID` */
export function servedFunctions(
  drafts: readonly (string | FunctionDraft)[],
): readonly ServedFunction[] {
  return onceEach(Array.from(givenList("functions", drafts), servedFunction));
}

function servedFunction(draft: string | FunctionDraft): ServedFunction {
  if (typeof draft === "string") return { name: parseFunctionName(draft) };
  const { name, concurrencyMax, perKeyMax, retry, load, debt, whenPoisoned } = draftOf(
    "a served function",
    draft,
    ["name", "concurrencyMax", "perKeyMax", "retry", "load", "debt", "whenPoisoned"],
  );
  return {
    name: parseFunctionName(name),
    ...(retry !== undefined && { retry: checkedRetry(retry) }),
    ...(load !== undefined && { load: checkedLoad(load) }),
    ...(debt !== undefined && { debt: checkedDebt(debt) }),
    ...(checkedWhenPoisoned(whenPoisoned) === "cancel" && { whenPoisoned: "cancel" }),
    ...(concurrencyMax !== undefined && {
      concurrencyMax: checkedCount("concurrencyMax", concurrencyMax),
    }),
    ...(perKeyMax !== undefined && {
      perKeyMax: checkedCount("perKeyMax", perKeyMax),
    }),
  };
}

/** @throws HoldfastError `OPTION_INVALID` */
export function checkedWhenPoisoned(given: WhenPoisoned = "park"): WhenPoisoned {
  if (given === "park" || given === "cancel") return given;
  throw givenInvalid("whenPoisoned", '"park" or "cancel"', given);
}

function checkedLoad(load: number): number {
  if (Number.isFinite(load) && load >= 0) return load;
  throw givenInvalid("load", "a number of 0 or more", load);
}

function checkedDebt(given: PlaceDebt): PlaceDebt {
  const { begun, new: fresh } = draftOf("debt", given, ["begun", "new"]);
  return { begun: checkedCount("debt.begun", begun), new: checkedCount("debt.new", fresh) };
}

function onceEach(functions: readonly ServedFunction[]): readonly ServedFunction[] {
  const once = new Map<FunctionName, ServedFunction>();
  for (const served of functions) {
    const before = once.get(served.name);
    once.set(served.name, {
      ...before,
      ...served,
      concurrencyMax: stricter(before?.concurrencyMax, served.concurrencyMax),
      perKeyMax: stricter(before?.perKeyMax, served.perKeyMax),
    });
  }
  return [...once.values()];
}

function stricter(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? (a ?? b) : Math.min(a, b);
}

/** The number of held executions of a function, and of each of its keys if those have a limit. */
export interface Holding {
  readonly total: number;
  readonly byKey: ReadonlyMap<string, number>;
}

export type Holdings = ReadonlyMap<FunctionName, Holding>;

export function hasLimit({ concurrencyMax, perKeyMax }: FunctionLimits): boolean {
  return concurrencyMax !== undefined || perKeyMax !== undefined;
}

/**
 * Holds the functions' rows until the transaction ends: two workers that counted at once would both
 * take the last place. The order is by name, so that workers never deadlock.
 */
export function* holdFunctions(functions: readonly LimitedFunction[]): Tx<void> {
  const names = functions.filter(hasLimit).map(({ name }) => name);
  for (const name of names.toSorted()) {
    const held = yield* row(sql`
      SELECT name FROM holdfast_execution_limit WHERE name = ${name} ${lockRow}`);
    if (held !== undefined) continue;
    yield* run(sql`
      INSERT INTO holdfast_execution_limit (name) VALUES (${name}) ON CONFLICT (name) DO NOTHING`);
    yield* row(sql`
      SELECT name FROM holdfast_execution_limit WHERE name = ${name} ${lockRow}`);
  }
}

/** Counts the held executions of functions with limits; the others are missing. */
export function* holdingsOf(functions: readonly LimitedFunction[]): Tx<Holdings> {
  const holdings = new Map<FunctionName, Holding>();
  for (const served of functions)
    if (hasLimit(served)) holdings.set(served.name, yield* holdingOf(served));
  return holdings;
}

function* holdingOf({ name, perKeyMax }: LimitedFunction): Tx<Holding> {
  if (perKeyMax === undefined) {
    const counted = yield* row<{ readonly n: number }>(sql`
      SELECT COUNT(*) AS n FROM holdfast_execution WHERE function = ${name} AND state = 'locked'`);
    return { total: counted?.n ?? 0, byKey: new Map() };
  }
  const counted = yield* rows<{
    readonly concurrency_key: string | null;
    readonly n: number;
  }>(sql`
    SELECT concurrency_key, COUNT(*) AS n FROM holdfast_execution
    WHERE function = ${name} AND state = 'locked' GROUP BY concurrency_key`);
  const byKey = new Map<string, number>();
  let total = 0;
  for (const { concurrency_key: concurrencyKey, n } of counted) {
    total += n;
    if (concurrencyKey !== null) byKey.set(concurrencyKey, n);
  }
  return { total, byKey };
}

/** The remaining places of one function while candidates are chosen. */
export class Places {
  readonly #perKeyMax: number;
  readonly #byKey: Map<string, number>;
  #room: number;

  constructor(
    { name, concurrencyMax, perKeyMax }: LimitedFunction,
    held: Holding,
    chosen: readonly {
      readonly function: FunctionName;
      readonly concurrency_key: string | null;
    }[],
  ) {
    this.#perKeyMax = perKeyMax ?? Number.MAX_SAFE_INTEGER;
    this.#byKey = new Map(held.byKey);
    this.#room = Math.max(0, (concurrencyMax ?? Number.MAX_SAFE_INTEGER) - held.total);
    for (const one of chosen) if (one.function === name) this.take(one);
  }

  /** The number of further executions of the function that may be held. */
  get room(): number {
    return this.#room;
  }

  isFree(concurrencyKey: string): boolean {
    return (this.#byKey.get(concurrencyKey) ?? 0) < this.#perKeyMax;
  }

  /** Takes a place. Returns false if there is none for this key. */
  take({ concurrency_key: concurrencyKey }: { readonly concurrency_key: string | null }): boolean {
    if (this.#room === 0) return false;
    if (concurrencyKey !== null) {
      if (!this.isFree(concurrencyKey)) return false;
      this.#byKey.set(concurrencyKey, (this.#byKey.get(concurrencyKey) ?? 0) + 1);
    }
    this.#room -= 1;
    return true;
  }
}
