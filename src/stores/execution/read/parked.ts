import { lineOf, type ExecutionId } from "../../../model/ids/execution-id.ts";
import { textsOf } from "../../../sql/dialect.ts";
import { rows, storeOperation, type Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import type { ExecutionContext } from "../context.ts";

/** An execution that cannot end until an operator unparks `parked`: itself, or a descendant. */
export interface ParkedBelow {
  readonly id: string;
  readonly parked: string;
}

/**
 * The number of parked children that one call reads. They are few, since an operator looks at each.
 */
const childrenMax = 1_000;

/** Finds which of some executions are parked, or wait for a parked descendant. */
export const readParked = storeOperation("readParked", {
  key: () => "parked",
  *one(_: ExecutionContext, ids: readonly string[]): Tx<readonly ParkedBelow[]> {
    const own = yield* rows<{ readonly id: string }>(sql`
      SELECT id FROM holdfast_execution WHERE id IN ${textsOf(ids)} AND lifecycle = 'parked'`);
    const children = yield* rows<{ readonly id: ExecutionId }>(sql`
      SELECT id FROM holdfast_execution WHERE lifecycle = 'parked' AND parent IS NOT NULL
      ORDER BY lifecycle, created_at, id LIMIT ${childrenMax}`);
    const asked = new Set(ids);
    const below = new Map<string, string>();
    for (const { id: parked } of children)
      for (const id of lineOf(parked)) if (asked.has(id)) below.set(id, parked);
    for (const { id } of own) below.set(id, id);
    return [...below].map(([id, parked]) => ({ id, parked }));
  },
});
