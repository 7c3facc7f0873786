import { executionNotFound } from "../../../model/execution-errors.ts";
import type { ExecutionId } from "../../../model/execution-id.ts";
import { lockRow } from "../../../sql/dialect.ts";
import { row } from "../../../sql/operation.ts";
import type { Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { isPresent } from "../presence.ts";

/** The key of an execution, locked until the transaction ends. @throws HoldfastError `EXECUTION_NOT_FOUND` */
export function* lockedKey(id: ExecutionId): Tx<number> {
  const found = yield* row<{ readonly key: number }>(sql`
    SELECT key FROM holdfast_execution WHERE id = ${id} AND ${isPresent(id)} ${lockRow}`);
  if (found === undefined) throw executionNotFound(id);
  return found.key;
}
