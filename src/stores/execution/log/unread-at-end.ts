import { row, type Tx } from "../../../sql/operation.ts";
import { sql, type Statement } from "../../../sql/statement.ts";
import type { Finished } from "../context.ts";

/**
 * Messages that a run has not received when it ends. Its code counts those that it was given and
 * did not take. The store adds those that came behind the last response that it was given. An end
 * that has seen every response costs nothing.
 */

/** The names of our own signals: they are not messages of users. */
const isOurs: Statement = sql`substr(inbox, 1, 11) = 's:holdfast/'`;

/** True when every response that there is was given to the code that ends. */
export function hasSeenAll({ seen = 0 }: Finished, responses: number): boolean {
  return responses <= seen;
}

/** The end with all messages that the code did not receive. */
export function* withUnread(
  execution: number,
  responses: number,
  finished: Finished,
): Tx<Finished> {
  if (hasSeenAll(finished, responses)) return finished;
  const last = yield* row<{ readonly seq: number }>(sql`
    SELECT seq FROM holdfast_execution_response
    WHERE execution = ${execution} AND kind = 'signal' AND read_by IS NULL
    ORDER BY seq DESC LIMIT 1`);
  if (last === undefined) return finished;
  const seen = finished.seen ?? (yield* lastSeen(execution));
  if (last.seq <= seen) return finished;
  const behind = yield* row<{ readonly count: number }>(sql`
    SELECT COUNT(*) AS count FROM holdfast_execution_response r
    WHERE execution = ${execution} AND kind = 'signal' AND read_by IS NULL AND seq > ${seen} AND NOT ${isOurs}
      AND NOT EXISTS (
        SELECT 1 FROM holdfast_execution_event q
        WHERE q.execution = r.execution AND q.inbox = r.inbox AND q.ordinal = r.ordinal)`);
  const count = behind?.count ?? 0;
  return count === 0 ? finished : { ...finished, unread: (finished.unread ?? 0) + count };
}

/** The last response that the log of the current run knows to have been given to its code. */
function* lastSeen(execution: number): Tx<number> {
  const found = yield* row<{ readonly seen: number }>(sql`
    SELECT seen FROM holdfast_execution_event
    WHERE execution = ${execution} AND seen > 0
      AND version > (SELECT history_from FROM holdfast_execution WHERE key = ${execution})
    ORDER BY version DESC LIMIT 1`);
  return found?.seen ?? 0;
}
