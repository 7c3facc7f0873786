import { lineOf, type ExecutionId } from "../../model/ids/execution-id.ts";
import { textsOf } from "../../sql/dialect.ts";
import { rows, type Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";

/**
 * True if the execution or one of its ancestors is being removed with its tree. Parts of it may
 * then be missing without being damaged.
 */
export function* beingRemoved(
  found: readonly { readonly id: ExecutionId | null }[],
): Tx<(id: ExecutionId | null) => boolean> {
  const line = new Set(found.flatMap(({ id }) => (id === null ? [] : lineOf(id))));
  const removed = yield* rows<{ readonly id: string }>(sql`
    SELECT id FROM holdfast_execution WHERE id IN ${textsOf([...line])} AND removing_at IS NOT NULL`);
  const gone = new Set(removed.map(({ id }) => id));
  return (id) => id !== null && lineOf(id).some((each) => gone.has(each));
}
