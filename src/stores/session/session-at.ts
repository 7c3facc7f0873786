import { keepRow } from "../../sql/dialect.ts";
import { row } from "../../sql/operation.ts";
import type { Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";

/** Whether the session of a key lives; it is not deleted then until the transaction ends. */
export function* isHeldLiving(key: number): Tx<boolean> {
  const found = yield* row(sql`
    SELECT key FROM holdfast_session WHERE key = ${key} AND deleted_at IS NULL ${keepRow}`);
  return found !== undefined;
}
