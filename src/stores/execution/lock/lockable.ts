import type { FunctionName } from "../../../model/function-name.ts";
import { row, plainOperation } from "../../../sql/operation.ts";
import type { Operation, Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { candidatesOf } from "./candidates.ts";
import type { KeyWalks } from "./candidates.ts";
import { earliestDue } from "./due.ts";
import { hasLimit, holdingsOf } from "./places.ts";
import type { LimitedFunction } from "./places.ts";

export interface LookForLockable {
  readonly functions: readonly LimitedFunction[];
  readonly now: number;
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
export const findLockable: Operation<LookForLockable, Lockable> =
  plainOperation("findLockable", {
    key: (input: LookForLockable) => input.functions[0]?.name ?? "",
    *one({ functions, now, walkAfter }) {
      const free = functions.filter((served) => !hasLimit(served));
      const limited = functions.filter(hasLimit);
      const { earliest } = yield* earliestDue.one({
        functions: free.map(({ name }) => name),
      });
      if (earliest !== undefined && earliest <= now)
        return { isThere: true, again: undefined, walked: new Map() };
      const { items, walked } = yield* candidatesOf({
        functions: limited,
        holdings: yield* holdingsOf(limited, now),
        chosen: [],
        dueBy: now,
        count: 1,
        except: [],
        walkAfter,
      });
      const instants = earliest === undefined ? [] : [earliest];
      for (const { name } of limited)
        instants.push(...(yield* changesOf(name, now)));
      return {
        isThere: items.length > 0,
        again: instants.length === 0 ? undefined : Math.min(...instants),
        walked,
      };
    },
  });

/** When the next of a function is due, and when the next lease of one that is only kept in memory has passed. */
function* changesOf(name: FunctionName, now: number): Tx<readonly number[]> {
  const found = yield* row<Readonly<Record<string, number | null>>>(sql`
    SELECT
      (SELECT due_at FROM holdfast_execution
       WHERE function = ${name} AND state = 'pending' AND lifecycle = 'active' AND due_at > ${now}
       ORDER BY due_at, id LIMIT 1) AS due,
      (SELECT lease_until FROM holdfast_execution
       WHERE function = ${name} AND state = 'pending' AND lease_until > ${now}
       ORDER BY lease_until LIMIT 1) AS pending,
      (SELECT lease_until FROM holdfast_execution
       WHERE function = ${name} AND state = 'blocked' AND lease_until > ${now}
       ORDER BY lease_until LIMIT 1) AS blocked`);
  return Object.values(found ?? {}).filter((instant) => instant !== null);
}
