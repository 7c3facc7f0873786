import type { FunctionName } from "../../../model/ids/function-name.ts";
import { textRows } from "../../../sql/dialect.ts";
import { row, rows, storeOperation, type Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import type { ExecutionContext } from "../context.ts";
import { isLockableBegun, isLockableNew } from "../state-row.ts";
import { candidatesOf, type KeyWalks } from "./candidates.ts";
import { nextDueInLanes, runsApart, type Lanes } from "./lanes.ts";
import { hasLimit, holdingsOf, type LimitedFunction } from "./limits.ts";
import { nextSuspectDue, suspectsDue, suspectsDueBy, type SuspectsWanted } from "./suspects.ts";

/**
 * Finds whether and when a run can be locked. Every query is a lookup at the front of an index,
 * regardless of the number of executions that sleep behind it.
 */

export interface LookForLockable {
  readonly functions: readonly LimitedFunction[];
  readonly now: number;
  /** The version of the code that would run it. */
  readonly codeVersion: string | null;
  readonly suspects: SuspectsWanted;
  /** The `walked` of the previous searches. */
  readonly walkAfter: KeyWalks;
}

export interface Lockable {
  /** True if a due run exists that the limits allow to be locked. */
  readonly isThere: boolean;
  /** The next instant at which that may change without an event. */
  readonly again: number | undefined;
  readonly walked: KeyWalks;
}

/** Finds whether a run can be locked now, or the next time to check if nothing happens before. */
export const findLockable = storeOperation("findLockable", {
  key: (input) => input.functions[0]?.name ?? "",
  *one(_: ExecutionContext, look: LookForLockable): Tx<Lockable> {
    const { functions, now, walkAfter, codeVersion } = look;
    const free = functions.filter((served) => !hasLimit(served));
    const limited = functions.filter(hasLimit);
    const names = functions.map(({ name }) => name);
    const { lanes, suspects } = yield* runsApart(names, codeVersion);
    const suspect = suspects.length === 0 ? undefined : yield* nextSuspect(look, suspects);
    const earliest = earlier(yield* earliestOf(free, lanes), suspect);
    if (earliest !== undefined && earliest <= now)
      return { isThere: true, again: undefined, walked: new Map() };
    const { items, walked } = yield* candidatesOf({
      functions: limited,
      holdings: yield* holdingsOf(limited),
      chosen: [],
      dueBy: now,
      count: 1,
      except: [],
      walkAfter,
      lanes,
    });
    const instants = earliest === undefined ? [] : [earliest];
    for (const { name } of limited)
      for (const next of [yield* nextDueAfter(name, now), yield* nextDueInLanes(lanes, name, now)])
        if (next !== undefined) instants.push(next);
    return {
      isThere: items.length > 0,
      again: instants.length === 0 ? undefined : Math.min(...instants),
      walked,
    };
  },
});

/** The instant at which a suspect may be taken; `now` if one may be taken already. */
function* nextSuspect(
  { functions, now, codeVersion, suspects: wanted }: LookForLockable,
  names: readonly FunctionName[],
): Tx<number | undefined> {
  if (wanted === "none") return undefined;
  const dueBy = suspectsDueBy(wanted, now);
  const holdings = yield* holdingsOf(functions);
  const due = yield* suspectsDue({ functions, names, holdings, codeVersion, dueBy });
  if (due.length > 0) return now;
  let next: number | undefined;
  for (const name of names) next = earlier(next, yield* nextSuspectDue(name, dueBy));
  return next === undefined ? undefined : next + now - dueBy;
}

function earlier(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || (b !== undefined && b < a) ? b : a;
}

/** The instant at which the first run of functions without limits is due. */
function* earliestOf(functions: readonly LimitedFunction[], lanes: Lanes): Tx<number | undefined> {
  const { earliest } = yield* earliestDue(functions.map(({ name }) => name));
  const instants = earliest === undefined ? [] : [earliest];
  for (const { name } of functions) {
    const first = yield* nextDueInLanes(lanes, name, Number.MIN_SAFE_INTEGER);
    if (first !== undefined) instants.push(first);
  }
  return instants.length === 0 ? undefined : Math.min(...instants);
}

/**
 * The next due time of a function after `now`. A run that is due already waits for a place, and is
 * announced when there is one.
 */
function* nextDueAfter(name: FunctionName, now: number): Tx<number | undefined> {
  const later = sql`due_at > ${now} ORDER BY due_at, id LIMIT 1`;
  const found = yield* row<FirstDue>(sql`
    SELECT
      (SELECT due_at FROM holdfast_execution WHERE function = ${name} AND ${isLockableNew} AND ${later}) AS new_at,
      (SELECT due_at FROM holdfast_execution WHERE function = ${name} AND ${isLockableBegun} AND ${later}) AS begun_at`);
  return found && firstOf(found);
}

/** The first due times of new runs of a function, and of runs that a worker has had. */
interface FirstDue {
  readonly new_at: number | null;
  readonly begun_at: number | null;
}

function firstOf({ new_at: newAt, begun_at: begunAt }: FirstDue): number | undefined {
  return earlier(newAt ?? undefined, begunAt ?? undefined);
}

export interface EarliestDue {
  /** The earliest of all functions; undefined when none has a pending run. */
  readonly earliest: number | undefined;
  /** Functions without pending runs are missing. */
  readonly byFunction: ReadonlyMap<FunctionName, number>;
}

/** The next due time of each function, judged only by time. */
export function* earliestDue(functions: readonly FunctionName[]): Tx<EarliestDue> {
  const found = yield* rows<FirstDue & { readonly name: FunctionName }>(sql`
    SELECT asked.value AS name,
      (SELECT due_at FROM holdfast_execution
       WHERE function = asked.value AND ${isLockableNew}
       ORDER BY due_at, id LIMIT 1) AS new_at,
      (SELECT due_at FROM holdfast_execution
       WHERE function = asked.value AND ${isLockableBegun}
       ORDER BY due_at, id LIMIT 1) AS begun_at
    FROM ${textRows(functions)} AS asked`);
  const byFunction = new Map<FunctionName, number>();
  for (const { name, ...first } of found) {
    const dueAt = firstOf(first);
    if (dueAt !== undefined) byFunction.set(name, dueAt);
  }
  const earliest = byFunction.size === 0 ? undefined : Math.min(...byFunction.values());
  return { earliest, byFunction };
}
