import type { ExecutionId } from "../../../model/ids/execution-id.ts";
import type { FunctionName } from "../../../model/ids/function-name.ts";
import { row, rows, storeOperation, type Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import type { ExecutionContext } from "../context.ts";
import { isLockableBegun, isLockableNew } from "../state-row.ts";

/** The longest due run of a function with no running run. */
export interface Unserved {
  readonly function: FunctionName;
  readonly id: ExecutionId;
  readonly due_at: number;
}

interface FindUnserved {
  /** The only function to check; all by default. */
  readonly only?: string;
  readonly dueBy: number;
}

/**
 * The number of functions that one call reads, by three lookups each, regardless of the number of
 * their runs.
 */
const functionsMax = 200;

/** Functions with a due run and no running one: no worker may be serving them. */
export const findUnserved = storeOperation("findUnserved", {
  key: () => "unserved",
  *one(_: ExecutionContext, { only, dueBy }: FindUnserved): Tx<readonly Unserved[]> {
    const unserved: Unserved[] = [];
    let name = "";
    for (let looked = 0; looked < functionsMax; looked += 1) {
      const which = only === undefined ? sql`function > ${name}` : sql`function = ${only}`;
      const [next] = (yield* rows<Unserved>(sql`
        SELECT function, id, due_at FROM (
          SELECT function, id, due_at FROM holdfast_execution
          WHERE ${which} AND ${isLockableNew} ORDER BY function, due_at, id LIMIT 1) AS fresh
        UNION ALL SELECT function, id, due_at FROM (
          SELECT function, id, due_at FROM holdfast_execution
          WHERE ${which} AND ${isLockableBegun} ORDER BY function, due_at, id LIMIT 1) AS begun`)).toSorted(
        firstServed,
      );
      if (next === undefined) break;
      name = next.function;
      if (next.due_at <= dueBy) {
        const running = yield* row(sql`
          SELECT concurrency_key FROM holdfast_execution WHERE function = ${name} AND state = 'locked'
          -- Not for the order: Postgres would look through the table for any one.
          ORDER BY concurrency_key LIMIT 1`);
        if (running === undefined) unserved.push(next);
      }
      if (only !== undefined) break;
    }
    return unserved;
  },
});

/** Orders functions by their bytes, as an index does. */
function firstServed(a: Unserved, b: Unserved): number {
  return compared(a.function, b.function) || a.due_at - b.due_at || compared(a.id, b.id);
}

function compared(a: string, b: string): number {
  return Number(a > b) - Number(a < b);
}
