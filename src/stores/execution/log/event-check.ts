import { splitDelayId } from "../../../model/delay-id.ts";
import { isHoldfastError } from "../../../model/errors.ts";
import { isControlKind } from "../../../model/execution-event.ts";
import type { ExecutionEvent } from "../../../model/execution-event.ts";
import { eventsInvalid } from "../../../model/execution-errors.ts";
import { splitToParts } from "../../../model/execution-id.ts";
import type { ExecutionId } from "../../../model/execution-id.ts";
import { isHistoryEvent } from "../../../model/history-event.ts";
import type { AppendEvents } from "./append.ts";
import { faultyField } from "./event-fields.ts";

/** An append is one transaction, and a child or event takes a statement or more. */
const eventsMax = 1_000;
const childrenMax = 1_000;

/**
 * What can be said against an append without looking at the execution. The
 * log is what everything else believes, so nothing gets into it unchecked,
 * whoever calls.
 *
 * @throws HoldfastError `EVENTS_INVALID`
 */
export function assertAppendable(input: AppendEvents): void {
  const { id, events, children, respondTo } = input;
  if (events.length === 0)
    throw eventsInvalid(id, "none", "there are none. Give at least one.");
  if (events.length > eventsMax || (children?.length ?? 0) > childrenMax)
    throw eventsInvalid(
      id,
      "tooMany",
      `an append takes at most ${eventsMax} events and ${childrenMax} children. Append them in parts.`,
      { events: events.length, children: children?.length ?? 0 },
    );
  const end = events.findIndex((event) => event.kind === "finished");
  if (end >= 0 && end !== events.length - 1)
    throw eventsInvalid(id, "end", '"finished" must be the last of them.');
  events.forEach((event, index) => assertEvent(id, event, index));
  if (end >= 0 && children?.some((child) => splitToParts(child.id)) === true)
    throw eventsInvalid(
      id,
      "end",
      "they end it, and children of an execution that has ended would be nobody's. Create top-level executions, or end it later.",
    );
  if (respondTo === undefined) return;
  if (respondTo === id || splitToParts(id)?.parent !== respondTo)
    throw eventsInvalid(id, "owner", `${respondTo} is not its parent.`);
  if (end < 0)
    throw eventsInvalid(
      id,
      "end",
      'a parent is told of the end, so "finished" must be among them.',
    );
}

/** The same as a question, for those who leave the answer to others. */
export function isAppendable(input: AppendEvents): boolean {
  try {
    assertAppendable(input);
    return true;
  } catch (error) {
    if (isHoldfastError(error)) return false;
    throw error;
  }
}

function assertEvent(
  id: ExecutionId,
  event: ExecutionEvent,
  index: number,
): void {
  const { kind } = event;
  const isHistory = isHistoryEvent(event);
  if (!isHistory && !isControlKind(kind))
    throw eventsInvalid(
      id,
      "kind",
      `events[${index}].kind is none that there is.`,
      { path: `events[${index}].kind` },
    );
  if (kind === "created" || kind === "forked")
    throw eventsInvalid(
      id,
      "kind",
      `"${kind}" is written by ${kind === "created" ? "create" : "fork"} alone. Use that.`,
    );
  const fault = faultyField(event, isHistory);
  if (fault !== undefined) {
    const path = `events[${index}].${fault.name}`;
    throw eventsInvalid(
      id,
      "field",
      `${path} of "${kind}" must be ${fault.expected}.`,
      { path },
    );
  }
  assertOwn(id, event);
}

/** An answer finds its way by the id of what was asked for, so that must name this execution and the set. */
function assertOwn(id: ExecutionId, event: ExecutionEvent): void {
  if (event.kind === "delayRequested") {
    const { execution, joinSet } = splitDelayId(event.delay);
    if (execution !== id || joinSet !== event.joinSet)
      throw eventsInvalid(
        id,
        "owner",
        `${event.delay} is not a delay of its set ${event.joinSet}.`,
      );
  } else if (event.kind === "childRequested") {
    const parts = splitToParts(event.child);
    if (parts?.parent !== id || parts.joinSet !== event.joinSet)
      throw eventsInvalid(
        id,
        "owner",
        `${event.child} is not a child of its set ${event.joinSet}.`,
      );
  }
}
