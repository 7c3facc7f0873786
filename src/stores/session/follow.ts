import type { SessionId } from "../../model/session-id.ts";
import { row, plainOperation } from "../../sql/operation.ts";
import type { Operation } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { beginFenceAfter } from "../lease/lease-row.ts";
import { generationKeys } from "./graph/generations.ts";

interface FollowSession {
  readonly id: SessionId;
  /** The highest generation and fence that this session may have had elsewhere. */
  readonly last: number;
  readonly at: number;
}

/**
 * Lets a session that is new to a database go on where it may have ended in
 * another one: leaves the tombstone that would be here. Nothing when the
 * database knows the session already.
 */
export const followSession: Operation<FollowSession, void> = plainOperation(
  "followSession",
  {
    key: (input: FollowSession) => input.id,
    *one({ id, last, at }) {
      const known = yield* generationKeys(id);
      if (last === 0 || known.length > 0) return;
      const made = yield* row<{ readonly key: number }>(sql`
        INSERT INTO holdfast_session
          (id, generation, created_at, deleted_at, reclaimed_at, revision, node_count, user_message_count, active_at)
        VALUES (${id}, ${last}, ${at}, ${at}, ${at}, 0, 0, 0, ${at})
        ON CONFLICT DO NOTHING RETURNING key`);
      if (made !== undefined) yield* beginFenceAfter(made.key, last);
    },
  },
);
