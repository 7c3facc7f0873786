import type { ControlEvent } from "../../../model/execution/event.ts";
import { eventsInvalid } from "../../../model/execution/errors.ts";
import type { ExecutionState } from "../../../model/execution/state.ts";
import { decideUnread, rangesOf, unreadPiecesMax } from "../../../model/execution/unread.ts";
import { integersOf } from "../../../sql/dialect.ts";
import { rows, run, type Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import type { ExecutionRecord } from "../state-row.ts";

type Continued = Extract<ControlEvent, { readonly kind: "continued" }>;

/** A new start reads every open signal, in one transaction. */
const openSignalsMax = 100_000;

/**
 * Records a new start. It marks the signals that its run has read, each once in its life, so that
 * unread signals cost only a lookup. An index finds the unread ones, however many have been read.
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
    `it leaves more unread signals than a new start can take over (${count}). Receive some first.`,
  );
}
