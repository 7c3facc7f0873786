import type { Encoded } from "../../../model/encoded.ts";
import type { ExecutionEvent, Holder } from "../../../model/execution-event.ts";
import { isSameRun } from "../../../model/execution-state.ts";
import { row, rows } from "../../../sql/operation.ts";
import type { Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import type { AppendEvents, AppendOutcome } from "./append.ts";
import { eventColumns, eventColumnsOf, eventOf } from "../event-row.ts";
import type { EventRow } from "../event-row.ts";
import type { ExecutionRecord } from "../state-row.ts";

/**
 * What an append answered when it was made before: the log holds these events
 * at these versions, under the same lock. So a caller that could not learn
 * the outcome asks again. Undefined when it was another append, or none.
 */
export function* answeredBefore(
  { key, state }: ExecutionRecord,
  input: AppendEvents,
): Tx<AppendOutcome | undefined> {
  const { version, events, fence } = input;
  const last = version + events.length - 1;
  if (version < 1 || last > state.version) return undefined;
  if (input.key !== undefined && input.key !== key) return undefined;
  const found = yield* rows<EventRow>(sql`
    SELECT ${eventColumns} FROM holdfast_execution_event
    WHERE execution = ${key} AND version >= ${version} AND version <= ${last} ORDER BY version`);
  const isSame =
    found.length === events.length &&
    found.every((stored, index) =>
      isSameEvent(stored, events[index] as ExecutionEvent, input.isSameValue),
    );
  if (!isSame) return undefined;
  if (fence !== undefined && !(yield* wasHeld(key, version, fence)))
    return undefined;
  const isFinish = events.at(-1)?.kind === "finished";
  return { nextVersion: isFinish ? last : last + 1 };
}

function isSameEvent(
  stored: EventRow,
  event: ExecutionEvent,
  isSameValue: (stored: Encoded, given: Encoded) => boolean = (a, b) => a === b,
): boolean {
  const { kind, call, seen, body, payload } = eventColumnsOf(event);
  if (
    stored.kind !== kind ||
    stored.call !== call ||
    stored.seen !== seen ||
    stored.body !== body
  )
    return false;
  // Their bodies hold the hash of the value.
  if (kind === "finished" || kind === "continued") return true;
  if (stored.payload === null || payload === null)
    return stored.payload === payload;
  return isSameValue(stored.payload, payload);
}

/** Whether this run was the last to lock the execution before a version. */
function* wasHeld(
  execution: number,
  version: number,
  fence: Pick<Holder, "executor" | "run">,
): Tx<boolean> {
  const found = yield* row<EventRow>(sql`
    SELECT ${eventColumns} FROM holdfast_execution_event
    WHERE execution = ${execution} AND version < ${version} AND kind IN ('locked', 'forked')
    ORDER BY version DESC LIMIT 1`);
  const event = found === undefined ? undefined : eventOf(found).event;
  return event?.kind === "locked" && isSameRun(event.holder, fence);
}
