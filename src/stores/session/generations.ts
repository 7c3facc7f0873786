import type { SessionId } from "../../model/session-id.ts";
import { rows } from "../../sql/operation.ts";
import type { Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";

/** The keys of all generations of a session, tombstones too. */
export function* generationKeys(id: SessionId): Tx<readonly number[]> {
  const found = yield* rows<{ readonly key: number }>(sql`
    SELECT key FROM holdfast_session WHERE id = ${id}`);
  return found.map(({ key }) => key);
}
