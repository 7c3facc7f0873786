import type { FunctionName } from "../../../model/ids/function-name.ts";
import { integersOf } from "../../../sql/dialect.ts";
import { rows } from "../../../sql/operation.ts";
import type { Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import type { Statement } from "../../../sql/statement.ts";
import { isLockable } from "../state-row.ts";
import { dueInLanes, type Lanes } from "./lanes.ts";
import { Places } from "./places.ts";
import type { Holdings, LimitedFunction } from "./places.ts";

/** An execution that could be locked next. */
export interface Candidate {
  readonly key: number;
  readonly id: string;
  readonly function: FunctionName;
  readonly due_at: number;
  readonly concurrency_key: string | null;
}

/** For each function the concurrency key up to which the last search had come. */
export type KeyWalks = ReadonlyMap<FunctionName, string>;

export interface Wanted {
  readonly functions: readonly LimitedFunction[];
  /** Of those that have limits. */
  readonly holdings: Holdings;
  /** Chosen before in the same transaction: they count as held. */
  readonly chosen: readonly Candidate[];
  readonly dueBy: number;
  readonly count: number;
  /** Keys of executions to pass over. */
  readonly except: readonly number[];
  readonly walkAfter: KeyWalks;
  /** Of runs that remember code versions, those that the worker may take. */
  readonly lanes: Lanes;
}

export interface Candidates {
  readonly items: readonly Candidate[];
  /** True when a limit kept something due from being among them. */
  readonly isLimited: boolean;
  /** Where searches by key have stopped. */
  readonly walked: KeyWalks;
}

/**
 * What should be locked next, within the limits: a function's longest due
 * first, and functions share, so that none waits behind the thousands of
 * another. Each is asked for as many as are wanted in all, by its index, and
 * the answers are merged by rank. Nothing is locked by this.
 */
export function* candidatesOf(wanted: Wanted): Tx<Candidates> {
  const ranked: Ranked[] = [];
  const walked = new Map<FunctionName, string>();
  let isLimited = false;
  for (const served of wanted.functions) {
    const held = wanted.holdings.get(served.name);
    if (held === undefined) {
      const due = yield* dueOf(served.name, wanted, wanted.count);
      const others = yield* remembering(served.name, wanted, wanted.count);
      ranked.push(...inTurn(served, wanted.chosen, [...due, ...others]));
      continue;
    }
    const places = new Places(served, held, wanted.chosen);
    const found =
      served.perKeyMax === undefined || places.room === 0
        ? yield* dueWithinRoom(served.name, wanted, places.room)
        : yield* dueWithinKeys(served.name, wanted, places, walked);
    ranked.push(...inTurn(served, wanted.chosen, found.items));
    isLimited ||= found.isLimited;
  }
  const items = ranked
    .toSorted((a, b) => a.rank - b.rank || longestDueFirst(a.candidate, b.candidate))
    .slice(0, wanted.count)
    .map(({ candidate }) => candidate);
  // Rows are locked in this order.
  return { items: items.toSorted(longestDueFirst), isLimited, walked };
}

interface Ranked {
  readonly candidate: Candidate;
  readonly rank: number;
}

/** Those of one function, each a place behind the one before; what the caller has of it, or was given just now, is before them all. */
function inTurn(
  { name, load = 0 }: LimitedFunction,
  chosen: readonly Candidate[],
  found: readonly Candidate[],
): readonly Ranked[] {
  const before = chosen.filter((one) => one.function === name).length;
  return found
    .toSorted(longestDueFirst)
    .map((candidate, place) => ({ candidate, rank: load + before + place }));
}

function longestDueFirst(a: Candidate, b: Candidate): number {
  return a.due_at - b.due_at || (a.id < b.id ? -1 : 1);
}

const all = sql``;

function* dueOf(
  name: FunctionName,
  { dueBy, except }: Wanted,
  limit: number,
  which: Statement = all,
): Tx<readonly Candidate[]> {
  return yield* rows<Candidate>(sql`
    SELECT key, id, function, due_at, concurrency_key FROM holdfast_execution
    WHERE function = ${name} AND ${isLockable} AND due_at <= ${dueBy}
      ${which} ${but(except)}
    ORDER BY due_at, id LIMIT ${limit}`);
}

function behind(last: Candidate | undefined): Statement {
  return last === undefined ? all : sql`AND (due_at, id) > (${last.due_at}, ${last.id})`;
}

function but(keys: readonly number[]): Statement {
  return keys.length === 0 ? all : sql`AND NOT key IN ${integersOf(keys)}`;
}

type Found = Omit<Candidates, "walked">;

/** One more than there is room for, if so many are wanted, tells whether some are left. */
function* dueWithinRoom(name: FunctionName, wanted: Wanted, room: number): Tx<Found> {
  const limit = Math.min(wanted.count, room + 1);
  const found = [
    ...(yield* dueOf(name, wanted, limit)),
    ...(yield* remembering(name, wanted, limit)),
  ].toSorted(longestDueFirst);
  return { items: found.slice(0, room), isLimited: found.length > room };
}

function* remembering(
  name: FunctionName,
  { lanes, dueBy, except }: Wanted,
  limit: number,
): Tx<readonly Candidate[]> {
  return lanes.has(name) ? yield* dueInLanes(lanes, name, dueBy, except, limit) : [];
}

/** Rows looked at in the order in which they are due, when many of them wait for keys that are full. */
const scanRowsMax = 1_000;
const sliceRows = 100;

/**
 * Looks at the longest due first. When a thousand of them do not fill the
 * places, because they wait for full keys, it goes on behind those with what
 * has no key and with the longest due of each of the next keys.
 */
function* dueWithinKeys(
  name: FunctionName,
  wanted: Wanted,
  places: Places,
  walked: Map<FunctionName, string>,
): Tx<Found> {
  const items: Candidate[] = [];
  let isLimited = false;
  const isEnough = (): boolean => items.length === wanted.count || (isLimited && places.room === 0);
  const choose = (candidates: readonly Candidate[]): void => {
    for (const candidate of candidates) {
      if (isEnough()) return;
      if (places.take(candidate)) items.push(candidate);
      else isLimited = true;
    }
  };
  let last: Candidate | undefined;
  for (let scanned = 0; scanned < scanRowsMax; scanned += sliceRows) {
    const slice = yield* dueOf(name, wanted, sliceRows, behind(last));
    const others = scanned === 0 ? yield* remembering(name, wanted, sliceRows) : [];
    choose(others.length === 0 ? slice : [...slice, ...others].toSorted(longestDueFirst));
    last = slice.at(-1);
    if (isEnough() || slice.length < sliceRows) return { items, isLimited };
  }
  const missing = wanted.count - items.length;
  const keyless = yield* dueOf(
    name,
    wanted,
    missing,
    sql`AND concurrency_key IS NULL ${behind(last)}`,
  );
  const keyed = yield* dueOfNextKeys(name, wanted, missing, places, walked);
  choose([...keyless, ...keyed].toSorted(longestDueFirst));
  return { items, isLimited };
}

/** Keys looked at in one call. */
const keysMax = 200;

/** The longest due of each key that has room, as many as are wanted, from where the last walk over the keys stopped. */
function* dueOfNextKeys(
  name: FunctionName,
  wanted: Wanted,
  count: number,
  places: Places,
  walked: Map<FunctionName, string>,
): Tx<readonly Candidate[]> {
  const start = wanted.walkAfter.get(name) ?? "";
  const keys = yield* nextKeys(name, wanted, start, keysMax);
  // At the end of them, from the front on: to where this began.
  if (keys.length < keysMax && start !== "")
    for (const key of yield* nextKeys(name, wanted, "", keysMax - keys.length))
      if (key.concurrency_key <= start) keys.push(key);
  const found: number[] = [];
  for (const { concurrency_key: concurrencyKey, first } of keys) {
    if (found.length === count) break;
    walked.set(name, concurrencyKey);
    if (first !== null && places.isFree(concurrencyKey)) found.push(first);
  }
  if (found.length === 0) return [];
  return yield* rows<Candidate>(sql`
    SELECT key, id, function, due_at, concurrency_key FROM holdfast_execution WHERE key IN ${integersOf(found)}`);
}

interface WaitingKey {
  readonly concurrency_key: string;
  /** The key of its longest due execution; null when none of it is due. */
  readonly first: number | null;
}

/** Goes from key to key by the index, however many executions wait for each. */
function* nextKeys(
  name: FunctionName,
  { dueBy, except }: Wanted,
  after: string,
  limit: number,
): Tx<WaitingKey[]> {
  const pending = sql`FROM holdfast_execution WHERE function = ${name} AND ${isLockable}`;
  const found = yield* rows<WaitingKey>(sql`
    WITH RECURSIVE walk (concurrency_key, place) AS (
      SELECT (SELECT concurrency_key ${pending} AND concurrency_key > ${after} ORDER BY concurrency_key LIMIT 1), 1
      UNION ALL
      SELECT (SELECT concurrency_key ${pending} AND concurrency_key > walk.concurrency_key
        ORDER BY concurrency_key LIMIT 1), place + 1
      FROM walk WHERE walk.concurrency_key IS NOT NULL AND place < ${limit}
    )
    SELECT concurrency_key,
      (SELECT key ${pending} AND concurrency_key = walk.concurrency_key AND due_at <= ${dueBy} ${but(except)}
       ORDER BY due_at, id LIMIT 1) AS first
    FROM walk WHERE concurrency_key IS NOT NULL ORDER BY place`);
  return [...found];
}
