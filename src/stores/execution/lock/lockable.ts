import type { FunctionName } from "../../../model/ids/function-name.ts";
import { textRows } from "../../../sql/dialect.ts";
import { row, rows, storeOperation, type StoreOperation, type Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import type { ExecutionContext } from "../context.ts";
import { isLockable } from "../state-row.ts";
import { candidatesOf, type KeyWalks } from "./candidates.ts";
import { lanesFor, nextDueInLanes, type Lanes } from "./lanes.ts";
import { hasLimit, holdingsOf, type LimitedFunction } from "./places.ts";

/**
 * When there is something to lock. Every question is a lookup at the front of
 * an index, whatever the number of executions that sleep behind it.
 */

export interface LookForLockable {
  readonly functions: readonly LimitedFunction[];
  readonly now: number;
  /** Of the code that would run it. */
  readonly codeVersion: string | null;
  /** The `walked` of the looks before. */
  readonly walkAfter: KeyWalks;
}

export interface Lockable {
  /** True when something is due that the limits allow to be locked. */
  readonly isThere: boolean;
  /** The next instant at which that may change by itself. */
  readonly again: number | undefined;
  readonly walked: KeyWalks;
}

/** Whether there is something to lock, or when to look again if nothing happens before. */
export const findLockable: StoreOperation<ExecutionContext, LookForLockable, Lockable> =
  storeOperation("findLockable", {
    key: (input: LookForLockable) => input.functions[0]?.name ?? "",
    *one(_: ExecutionContext, { functions, now, walkAfter, codeVersion }) {
      const free = functions.filter((served) => !hasLimit(served));
      const limited = functions.filter(hasLimit);
      const lanes = yield* lanesFor(
        functions.map(({ name }) => name),
        codeVersion,
      );
      const earliest = yield* earliestOf(free, lanes);
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
        for (const next of [
          yield* nextDueAfter(name, now),
          yield* nextDueInLanes(lanes, name, now),
        ])
          if (next !== undefined) instants.push(next);
      return {
        isThere: items.length > 0,
        again: instants.length === 0 ? undefined : Math.min(...instants),
        walked,
      };
    },
  });

/** When the first of functions without limits is due. */
function* earliestOf(functions: readonly LimitedFunction[], lanes: Lanes): Tx<number | undefined> {
  const { earliest } = yield* earliestDue(functions.map(({ name }) => name));
  const instants = earliest === undefined ? [] : [earliest];
  for (const { name } of functions) {
    const first = yield* nextDueInLanes(lanes, name, Number.MIN_SAFE_INTEGER);
    if (first !== undefined) instants.push(first);
  }
  return instants.length === 0 ? undefined : Math.min(...instants);
}

/** When the next of a function is due: what is due already waits for a place, and is told of when there is one. */
function* nextDueAfter(name: FunctionName, now: number): Tx<number | undefined> {
  const found = yield* row<{ readonly due_at: number }>(sql`
    SELECT due_at FROM holdfast_execution
    WHERE function = ${name} AND ${isLockable} AND due_at > ${now}
    ORDER BY due_at, id LIMIT 1`);
  return found?.due_at;
}

export interface EarliestDue {
  /** Of all functions asked for; undefined when none has anything pending. */
  readonly earliest: number | undefined;
  /** Functions without anything pending are missing. */
  readonly byFunction: ReadonlyMap<FunctionName, number>;
}

/** When the next execution of each function can be locked, as far as its time goes. */
export function* earliestDue(functions: readonly FunctionName[]): Tx<EarliestDue> {
  const found = yield* rows<{
    readonly name: FunctionName;
    readonly due_at: number | null;
  }>(sql`
    SELECT asked.value AS name,
      (SELECT due_at FROM holdfast_execution
       WHERE function = asked.value AND ${isLockable}
       ORDER BY due_at, id LIMIT 1) AS due_at
    FROM ${textRows(functions)} AS asked`);
  const byFunction = new Map<FunctionName, number>();
  for (const { name, due_at: dueAt } of found) if (dueAt !== null) byFunction.set(name, dueAt);
  const earliest = byFunction.size === 0 ? undefined : Math.min(...byFunction.values());
  return { earliest, byFunction };
}
