import { topLevelOf } from "../../model/execution-id.ts";
import type { ExecutionId } from "../../model/execution-id.ts";
import { sql } from "../../sql/statement.ts";
import type { Statement } from "../../sql/statement.ts";

/**
 * A condition on the row of an execution: true unless retention is removing
 * its tree, which is then as good as gone. Only finished executions can be in
 * such a tree, so the others need no look at their root.
 */
export function isPresent(id: ExecutionId): Statement {
  const root = topLevelOf(id);
  if (root === id) return sql`removing_at IS NULL`;
  return sql`(state <> 'finished' OR NOT EXISTS (
    SELECT 1 FROM holdfast_execution AS root WHERE root.id = ${root} AND root.removing_at IS NOT NULL))`;
}
