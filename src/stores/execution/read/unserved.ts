import type { ExecutionId } from "../../../model/ids/execution-id.ts";
import type { FunctionName } from "../../../model/ids/function-name.ts";
import { row, storeOperation, type StoreOperation } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import type { ExecutionContext } from "../context.ts";
import { isLockable } from "../state-row.ts";

/** The longest due run of a function of which none is running anywhere. */
export interface Unserved {
  readonly function: FunctionName;
  readonly id: ExecutionId;
  readonly due_at: number;
}

interface FindUnserved {
  /** One function alone; all by default. */
  readonly only?: string;
  readonly dueBy: number;
}

/** Functions looked at in one call, by two lookups each however many runs they have. */
const functionsMax = 200;

/** Functions that have something due and nothing running: nobody may be serving them. */
export const findUnserved: StoreOperation<ExecutionContext, FindUnserved, readonly Unserved[]> =
  storeOperation("findUnserved", {
    key: () => "unserved",
    *one(_: ExecutionContext, { only, dueBy }) {
      const unserved: Unserved[] = [];
      let name = "";
      for (let looked = 0; looked < functionsMax; looked += 1) {
        const which = only === undefined ? sql`function > ${name}` : sql`function = ${only}`;
        const next = yield* row<Unserved>(sql`
        SELECT function, id, due_at FROM holdfast_execution
        WHERE ${which} AND ${isLockable} ORDER BY function, due_at, id LIMIT 1`);
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
