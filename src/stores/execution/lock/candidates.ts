import {
  debtAfterAll,
  noDebt,
  type DueKind,
  type PlaceDebt,
} from "../../../model/execution/place-debt.ts";
import type { FunctionName } from "../../../model/ids/function-name.ts";
import { integersOf } from "../../../sql/dialect.ts";
import { rows, type Tx } from "../../../sql/operation.ts";
import { sql, type Statement } from "../../../sql/statement.ts";
import { isLockable, isLockableBegun, isLockableNew } from "../state-row.ts";
import { candidateColumns, longestDueFirst, type Candidate } from "./candidate.ts";
import { DueFront, shareOut, type DueFronts } from "./due-front.ts";
import { dueInLanes, type Lanes } from "./lanes.ts";
import { Places, type Holdings, type LimitedFunction } from "./limits.ts";

/** For each function, the concurrency key that the last search reached. */
export type KeyWalks = ReadonlyMap<FunctionName, string>;

export interface Wanted {
  readonly functions: readonly LimitedFunction[];
  /** The holdings of functions with limits. */
  readonly holdings: Holdings;
  /** Candidates chosen earlier in the same transaction: they count as held. */
  readonly chosen: readonly Candidate[];
  readonly dueBy: number;
  readonly count: number;
  /** Keys of executions to skip. */
  readonly except: readonly number[];
  readonly walkAfter: KeyWalks;
  /** The lanes of runs that remember code versions and that the worker may take. */
  readonly lanes: Lanes;
}

export interface Candidates {
  /** The candidates, best first. */
  readonly items: readonly Candidate[];
  /** True if a limit excluded a due execution. */
  readonly isLimited: boolean;
  /** The keys at which searches stopped. */
  readonly walked: KeyWalks;
}

/**
 * Selects the next executions to lock, within the limits. New and begun runs of a function share
 * its places, and functions share the total, so that no function waits behind the thousands of
 * another. Each function is asked for the full number of both kinds, by its indexes, and the
 * results are merged by rank. Nothing is locked here.
 */
export function* candidatesOf(wanted: Wanted): Tx<Candidates> {
  const ranked: Ranked[] = [];
  const walked = new Map<FunctionName, string>();
  let isLimited = false;
  for (const served of wanted.functions) {
    const before = wanted.chosen.filter((one) => one.function === served.name);
    const found = yield* dueWithinLimits(served, debtOf(served, before), wanted, walked);
    const rank = (served.load ?? 0) + before.length;
    ranked.push(...found.items.map((candidate, place) => ({ candidate, rank: rank + place })));
    isLimited ||= found.isLimited;
  }
  const items = ranked
    .toSorted((a, b) => a.rank - b.rank || longestDueFirst(a.candidate, b.candidate))
    .slice(0, wanted.count)
    .map(({ candidate }) => candidate);
  return { items, isLimited, walked };
}

/**
 * A candidate with its rank: each candidate of a function ranks one place behind the previous one.
 * Runs that the caller already has or was just given rank before them all.
 */
interface Ranked {
  readonly candidate: Candidate;
  readonly rank: number;
}

/** The debt to both kinds of a function, counting the candidates chosen just now. */
function debtOf({ debt = noDebt }: LimitedFunction, chosen: readonly Candidate[]): PlaceDebt {
  const begun = chosen.filter((one) => one.is_begun === 1).length;
  return debtAfterAll(debt, { begun, new: chosen.length - begun });
}

type Found = Omit<Candidates, "walked">;

function* dueWithinLimits(
  served: LimitedFunction,
  debt: PlaceDebt,
  wanted: Wanted,
  walked: Map<FunctionName, string>,
): Tx<Found> {
  const held = wanted.holdings.get(served.name);
  if (held === undefined) return yield* dueWithinRoom(served.name, debt, wanted, unlimited);
  const places = new Places(served, held, wanted.chosen);
  return served.perKeyMax === undefined || places.room === 0
    ? yield* dueWithinRoom(served.name, debt, wanted, places.room)
    : yield* dueWithinKeys(served.name, debt, wanted, places, walked);
}

const unlimited = Number.MAX_SAFE_INTEGER;
const all = sql``;

type DueOfKinds = Readonly<Record<DueKind, readonly Candidate[]>>;

/** The longest due of each kind, up to `limit` of each. */
function* dueOfKinds(name: FunctionName, wanted: Wanted, limit: number): Tx<DueOfKinds> {
  const { dueBy, except } = wanted;
  const found = yield* rows<Candidate>(sql`
    SELECT ${candidateColumns}, 1 AS is_begun FROM (
      SELECT ${candidateColumns} FROM holdfast_execution
      WHERE function = ${name} AND ${isLockableBegun} AND due_at <= ${dueBy} ${but(except)}
      ORDER BY due_at, id LIMIT ${limit}) AS begun
    UNION ALL SELECT ${candidateColumns}, 0 AS is_begun FROM (
      SELECT ${candidateColumns} FROM holdfast_execution
      WHERE function = ${name} AND ${isLockableNew} AND due_at <= ${dueBy} ${but(except)}
      ORDER BY due_at, id LIMIT ${limit}) AS fresh`);
  return kindsOf(found);
}

function* remembering(
  name: FunctionName,
  { lanes, dueBy, except }: Wanted,
  limit: number,
): Tx<readonly Candidate[]> {
  return lanes.has(name) ? yield* dueInLanes(lanes, name, dueBy, except, limit) : [];
}

/** The fronts of both kinds, including runs that remember code versions. */
function frontsOf(due: DueOfKinds, others: readonly Candidate[]): DueFronts {
  const { begun, new: fresh } = kindsOf([...due.begun, ...due.new, ...others]);
  return { begun: new DueFront(begun), new: new DueFront(fresh) };
}

function kindsOf(found: readonly Candidate[]): DueOfKinds {
  const inOrder = found.toSorted(longestDueFirst);
  return {
    begun: inOrder.filter((one) => one.is_begun === 1),
    new: inOrder.filter((one) => one.is_begun === 0),
  };
}

function but(keys: readonly number[]): Statement {
  return keys.length === 0 ? all : sql`AND NOT key IN ${integersOf(keys)}`;
}

/**
 * Reads one more than there is room for, if that many are wanted, to find out whether some are
 * left.
 */
function* dueWithinRoom(
  name: FunctionName,
  debt: PlaceDebt,
  wanted: Wanted,
  room: number,
): Tx<Found> {
  const limit = Math.min(wanted.count, room + 1);
  const due = yield* dueOfKinds(name, wanted, limit);
  const items: Candidate[] = [];
  const fronts = frontsOf(due, yield* remembering(name, wanted, limit));
  yield* shareOut(fronts, debt, (candidate) => {
    if (items.length === limit) return "enough";
    items.push(candidate);
    return "taken";
  });
  return { items: items.slice(0, room), isLimited: items.length > room };
}

/**
 * The number of rows of each kind that a search reads in due order when many of them wait for full
 * keys.
 */
const scanRowsMax = 1_000;
const sliceRows = 100;

/**
 * Reads the longest due of each kind first. If a thousand of them do not fill the places, because
 * they wait for full keys, the search continues. It then reads runs without a key, and the longest
 * due run of each of the next keys.
 */
function* dueWithinKeys(
  name: FunctionName,
  debt: PlaceDebt,
  wanted: Wanted,
  places: Places,
  walked: Map<FunctionName, string>,
): Tx<Found> {
  const items: Candidate[] = [];
  let isLimited = false;
  const isEnough = (): boolean => items.length === wanted.count || (isLimited && places.room === 0);
  const offer = (candidate: Candidate) => {
    if (isEnough()) return "enough";
    if (!places.take(candidate)) {
      isLimited = true;
      return "passed";
    }
    items.push(candidate);
    return "taken";
  };
  const scan = new Scan(name, wanted);
  yield* shareOut(yield* scan.fronts(), debt, offer);
  if (isEnough() || !scan.isCut) return { items, isLimited };
  const missing = wanted.count - items.length;
  const others = { ...wanted, except: [...wanted.except, ...items.map(({ key }) => key)] };
  const keyless = yield* dueWithoutKey(name, others, missing);
  const keyed = yield* dueOfNextKeys(name, others, missing, places, walked);
  yield* shareOut(frontsOf(kindsOf(keyless), keyed), debtOf({ name, debt }, items), offer);
  return { items, isLimited };
}

/** Reads the fronts of a function in slices, at most a thousand rows of each. */
class Scan {
  readonly #name: FunctionName;
  readonly #wanted: Wanted;
  /** True if more is due behind the rows that were read. */
  isCut = false;

  constructor(name: FunctionName, wanted: Wanted) {
    this.#name = name;
    this.#wanted = wanted;
  }

  *fronts(): Tx<DueFronts> {
    const due = yield* dueOfKinds(this.#name, this.#wanted, sliceRows);
    const others = yield* remembering(this.#name, this.#wanted, sliceRows);
    const begun = others.length === 0 ? due.begun : [...due.begun, ...others];
    return {
      begun: new DueFront(begun.toSorted(longestDueFirst), this.#readOn(due.begun, "begun")),
      new: new DueFront(due.new, this.#readOn(due.new, "new")),
    };
  }

  /** Reads the slices behind the first one. */
  #readOn(first: readonly Candidate[], kind: DueKind): () => Tx<readonly Candidate[]> {
    let slice = first;
    let scanned = sliceRows;
    const readSlice = (last: Candidate): Tx<readonly Candidate[]> => this.#slice(last, kind);
    const cut = (): void => {
      this.isCut = true;
    };
    return function* () {
      const last = slice.at(-1);
      if (last === undefined || slice.length < sliceRows) return [];
      if (scanned === scanRowsMax) {
        cut();
        return [];
      }
      slice = yield* readSlice(last);
      scanned += sliceRows;
      return slice;
    };
  }

  *#slice(last: Candidate, kind: DueKind): Tx<readonly Candidate[]> {
    const { dueBy, except } = this.#wanted;
    return yield* rows<Candidate>(sql`
      SELECT ${candidateColumns}, ${kind === "new" ? sql`0` : sql`1`} AS is_begun FROM holdfast_execution
      WHERE function = ${this.#name} AND ${kind === "new" ? isLockableNew : isLockableBegun}
        AND due_at <= ${dueBy} AND (due_at, id) > (${last.due_at}, ${last.id}) ${but(except)}
      ORDER BY due_at, id LIMIT ${sliceRows}`);
  }
}

/** 1 if a worker has had the run before. */
const isBegun = sql`CASE WHEN backoff_ms IS NULL THEN 0 ELSE 1 END AS is_begun`;

function* dueWithoutKey(
  name: FunctionName,
  { dueBy, except }: Wanted,
  limit: number,
): Tx<readonly Candidate[]> {
  return yield* rows<Candidate>(sql`
    SELECT ${candidateColumns}, ${isBegun} FROM holdfast_execution
    WHERE function = ${name} AND ${isLockable} AND concurrency_key IS NULL AND due_at <= ${dueBy} ${but(except)}
    ORDER BY due_at, id LIMIT ${limit}`);
}

/** The number of keys that one call searches. */
const keysMax = 200;

/**
 * The longest due of each key that has room, up to the wanted number, from where the last walk over
 * the keys stopped.
 */
function* dueOfNextKeys(
  name: FunctionName,
  wanted: Wanted,
  count: number,
  places: Places,
  walked: Map<FunctionName, string>,
): Tx<readonly Candidate[]> {
  const start = wanted.walkAfter.get(name) ?? "";
  const keys = yield* nextKeys(name, wanted, start, keysMax);
  // At the last key the walk starts over, up to where this call began.
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
    SELECT ${candidateColumns}, ${isBegun} FROM holdfast_execution WHERE key IN ${integersOf(found)}`);
}

interface WaitingKey {
  readonly concurrency_key: string;
  /** The row key of its longest due execution; null when none of them is due. */
  readonly first: number | null;
}

/** Walks from key to key by the index, regardless of how many executions wait for each. */
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
