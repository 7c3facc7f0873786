import { textsOf } from "../../sql/dialect.ts";
import { row, rows, run, plainOperation } from "../../sql/operation.ts";
import type { Operation, Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { lockedSession } from "../session/session-row.ts";
import type { SessionRef, SessionRoot } from "../session/session-row.ts";
import { withoutBytes } from "./attachment-row.ts";

/**
 * Marks attachments of a session as referred to by a commit; the first time
 * stays. For the turn commit, which has locked the session.
 *
 * @returns those it cannot refer to, which stay as they are: the session does
 *   not have them, since they were never put or the commit came after the grace
 *   period, or their bytes are gone or never arrived.
 */
export function* stampAttachments(
  session: SessionRoot,
  ids: readonly string[],
  now: number,
): Tx<readonly string[]> {
  if (ids.length === 0) return [];
  const gone = new Set(yield* withoutBytes(ids));
  const there = ids.filter((id) => !gone.has(id));
  if (there.length === 0) return ids;
  yield* run(sql`
    UPDATE holdfast_attachment SET committed_at = ${now}
    WHERE session = ${session.key} AND id IN ${textsOf(there)} AND committed_at IS NULL`);
  const found = yield* rows<{ readonly id: string }>(sql`
    SELECT id FROM holdfast_attachment WHERE session = ${session.key} AND id IN ${textsOf(there)}`);
  const stamped = new Set(found.map(({ id }) => id));
  return ids.filter((id) => !stamped.has(id));
}

interface CommitAttachments {
  readonly session: SessionRef;
  readonly ids: readonly string[];
  readonly now: number;
}

/** The same outside a turn commit. */
export const commitAttachments: Operation<
  CommitAttachments,
  readonly string[]
> = plainOperation("commitAttachments", {
  key: (input: CommitAttachments) => input.session.id,
  *one({ session, ids, now }) {
    return yield* stampAttachments(yield* lockedSession(session), ids, now);
  },
});

/** How many attachments of a session commits refer to. */
export function* committedAttachments(session: number): Tx<number> {
  const found = yield* row<{ readonly count: number }>(sql`
    SELECT COUNT(*) AS count FROM holdfast_attachment
    WHERE session = ${session} AND committed_at IS NOT NULL`);
  return found?.count ?? 0;
}
