import { isHoldfastError } from "../../../model/errors.ts";
import type { ExecutionState } from "../../../model/execution/state.ts";
import type { ExecutionEvent } from "../../../model/execution/event.ts";
import { splitToParts } from "../../../model/ids/execution-id.ts";
import { isSameRun } from "../../../model/execution/state.ts";
import type { Encoded } from "../../../model/values/encoded.ts";
import { row, rows, type Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import type { Fence } from "../checks.ts";
import type { ExecutionContext } from "../context.ts";
import {
  bodyOf,
  eventColumns,
  eventColumnsOf,
  eventOf,
  type EventColumns,
  type EventRow,
} from "../event-row.ts";
import { heldBefore } from "../lock/lock.ts";
import type { LockedExecution } from "../lock/locked.ts";
import type { ExecutionRecord } from "../state-row.ts";
import type { AppendEvents } from "./append.ts";
import { withdrawnText } from "./delay-requests.ts";
import { appended, type AppendOutcome, type Scheduled, type ToldParent } from "./append-to.ts";
import { earlierResponse } from "./respond.ts";

/**
 * The outcome of an append that was made before: the log holds these events at these versions,
 * under the same lock. A caller that lost the first response can therefore repeat the call.
 * Undefined when the log holds another append or none.
 */
export function* answeredBefore(
  context: ExecutionContext,
  record: ExecutionRecord,
  input: AppendEvents,
): Tx<AppendOutcome | undefined> {
  const { key, state } = record;
  const { version, events, fence } = input;
  const last = version + events.length - 1;
  if (version < 1 || last > state.version) return undefined;
  if (input.key !== undefined && input.key !== key) return undefined;
  const found = yield* rows<EventRow & { readonly withdrawn: string | null }>(sql`
    SELECT ${eventColumns}, withdrawn FROM holdfast_execution_event
    WHERE execution = ${key} AND version >= ${version} AND version <= ${last} ORDER BY version`);
  const isSame =
    found.length === events.length &&
    found.at(-1)?.withdrawn === withdrawnText(input.withdraw ?? []) &&
    found.every((stored, index) => isSameEvent(context, stored, events[index] as ExecutionEvent));
  if (!isSame) return undefined;
  if (fence !== undefined && !(yield* wasHeld(key, version, fence))) return undefined;
  const isEnd = events.at(-1)?.kind === "finished";
  const scheduled = found.flatMap((stored): Scheduled | [] => {
    const { event } = eventOf(stored);
    if (event.kind !== "scheduled") return [];
    return { version: stored.version, outcome: event.outcome };
  });
  const outcome = appended(isEnd ? last : last + 1, found.at(-1)?.at ?? input.at, {
    scheduled,
    parent: isEnd ? yield* toldBefore(record) : undefined,
    locked: yield* lockedBefore(context, input),
    unread: isEnd ? unreadIn(found.at(-1)) : undefined,
  });
  return { ...outcome, ...unseenBy(events, state) };
}

function unreadIn(end: EventRow | undefined): number | undefined {
  const event = end && eventOf(end).event;
  return event?.kind === "finished" ? event.unread : undefined;
}

/** Reports responses that arrived before the wait began to a worker that continues in memory. */
export function unseenBy(
  events: readonly ExecutionEvent[],
  { responses }: ExecutionState,
): Pick<AppendOutcome, "responses"> {
  const last = events.at(-1);
  return last?.kind === "waiting" && last.seen < responses ? { responses } : {};
}

function* toldBefore({ id, parent }: ExecutionRecord): Tx<ToldParent | undefined> {
  const parts = splitToParts(id);
  if (parent === null || parts === undefined) return undefined;
  const told = yield* earlierResponse(parent, id);
  return told && { id: parts.parent, seq: told.seq };
}

/** The existing locks of executions that were created locked and that the same run still holds. */
function* lockedBefore(
  context: ExecutionContext,
  { children = [], starts = [] }: AppendEvents,
): Tx<LockedExecution[]> {
  const locked: LockedExecution[] = [];
  for (const { id, lock } of [...starts, ...children]) {
    const held = lock && (yield* heldBefore(context, id, lock));
    if (held !== undefined) locked.push(held);
  }
  return locked;
}

function isSameEvent(context: ExecutionContext, stored: EventRow, event: ExecutionEvent): boolean {
  const given = eventColumnsOf(event);
  const { kind, call, seen, payload } = given;
  if (stored.kind !== kind || stored.call !== call || stored.seen !== seen) return false;
  if (!isSameBody(stored, given)) return false;
  // The bodies of these kinds hold the hash of the value.
  if (kind === "finished" || kind === "continued") return true;
  if (stored.payload === null || payload === null) return stored.payload === payload;
  return isSameValue(context, stored.payload, payload);
}

/** Fields that two calls with the same event may differ in: the store decides or measures them. */
const unasked: Readonly<Partial<Record<string, Readonly<Record<string, undefined>>>>> = {
  scheduled: { outcome: undefined },
  continued: { left: undefined, continuation: undefined },
  finished: { unread: undefined },
  stepFinished: { ran: undefined },
  stepAttemptFailed: { ran: undefined },
  transactionFinished: { ran: undefined },
};

function isSameBody(stored: EventRow, { kind, body }: EventColumns): boolean {
  if (stored.body === body) return true;
  const fields = unasked[kind];
  if (fields === undefined) return false;
  const [one, other] = [stored, { ...stored, body }].map((each) =>
    JSON.stringify({ ...bodyOf(each), ...fields }),
  );
  return one === other;
}

/** Compares values: an encrypting codec may write the same value differently each time. */
function isSameValue({ values }: ExecutionContext, stored: Encoded, given: Encoded): boolean {
  if (stored === given) return true;
  try {
    const [one, other] = [stored, given].map((text) => values.hash(values.readValue(text)));
    return one === other;
  } catch (error) {
    if (isHoldfastError(error)) return false;
    throw error;
  }
}

/** True if this run was the last to lock the execution before a version. */
export function* wasHeld(execution: number, version: number, fence: Fence): Tx<boolean> {
  const found = yield* row<EventRow>(sql`
    SELECT ${eventColumns} FROM holdfast_execution_event
    WHERE execution = ${execution} AND version < ${version} AND kind IN ('locked', 'forked')
    ORDER BY version DESC LIMIT 1`);
  const event = found === undefined ? undefined : eventOf(found).event;
  return event?.kind === "locked" && isSameRun(event.holder, fence);
}
