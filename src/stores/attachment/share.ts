import { run } from "../../sql/operation.ts";
import type { Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import type { SessionRoot } from "../session/session-row.ts";

/**
 * Gives a fork what the session it comes from has committed, since its history
 * refers to it. Both sessions are locked, so nothing is forgotten meanwhile;
 * the bytes are shared.
 */
export function* shareAttachments(
  from: SessionRoot,
  to: SessionRoot,
): Tx<number> {
  return yield* run(sql`
    INSERT INTO holdfast_attachment (session, id, intent_at, committed_at, size, media_type, width, height, label)
    SELECT CAST(${to.key} AS BIGINT), id, intent_at, committed_at, size, media_type, width, height, label
    FROM holdfast_attachment WHERE session = ${from.key} AND committed_at IS NOT NULL
    ON CONFLICT (session, id) DO NOTHING`);
}
