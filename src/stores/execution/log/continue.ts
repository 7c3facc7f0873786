import type { ControlEvent } from "../../../model/execution/event.ts";
import { eventsInvalid } from "../../../model/execution/errors.ts";
import type { ExecutionState } from "../../../model/execution/state.ts";
import { decideUnread, rangesOf, unreadPiecesMax } from "../../../model/execution/unread.ts";
import { integersOf } from "../../../sql/dialect.ts";
import { rows, run, type Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import type { ExecutionRecord } from "../state-row.ts";

type Continued = Extract<ControlEvent, { readonly kind: "continued" }>;

/** A new start looks at each of them, in one transaction. */
const openSignalsMax = 100_000;

/**
 * A new start as it is recorded. What its run has read is marked so: each
 * signal once in its life, so that those which nobody reads cost nothing but a
 * look. What is left is found by an index, however many have been read.
 *
 * @throws HoldfastError `EVENTS_INVALID`
 */
export function* markRead(
  { id, key }: ExecutionRecord,
  { continuations }: ExecutionState,
  event: Continued,
): Tx<Continued> {
  const open = yield* rows<{
    readonly seq: number;
    readonly taken: number;
  }>(sql`
    SELECT r.seq, CASE WHEN EXISTS (
        SELECT 1 FROM holdfast_execution_event q
        WHERE q.execution = r.execution AND q.inbox = r.inbox AND q.ordinal = r.ordinal
      ) THEN 1 ELSE 0 END AS taken
    FROM holdfast_execution_response r
    WHERE r.execution = ${key} AND r.kind = 'signal' AND r.read_by IS NULL
    ORDER BY r.seq LIMIT ${openSignalsMax + 1}`);
  if (open.length > openSignalsMax) throw tooMany(id, open.length);
  const { unread, read } = decideUnread(
    id,
    event,
    open.map(({ seq, taken }) => ({ seq, isTaken: taken === 1 })),
  );
  if (read.length > 0)
    yield* run(sql`
      UPDATE holdfast_execution_response SET read_by = ${continuations}
      WHERE execution = ${key} AND seq IN ${integersOf(read)}`);
  const left = rangesOf(unread);
  if (left.length > unreadPiecesMax) throw tooMany(id, left.length);
  return { ...event, left, continuation: continuations + 1 };
}

function tooMany(id: ExecutionRecord["id"], count: number): ReturnType<typeof eventsInvalid> {
  return eventsInvalid(
    id,
    "tooMany",
    `it leaves more unread signals than a new start can take over (${count}). Receive some before.`,
  );
}
