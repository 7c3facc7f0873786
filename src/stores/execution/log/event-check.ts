import { splitDelayId } from "../../../model/ids/delay-id.ts";
import { isControlKind, type ExecutionEvent } from "../../../model/execution/event.ts";
import { eventsInvalid } from "../../../model/execution/errors.ts";
import { splitToParts, type ExecutionId } from "../../../model/ids/execution-id.ts";
import {
  isFound,
  isHistoryEvent,
  isHistoryKind,
  joinSetIn,
  showsProgress,
} from "../../../model/execution/history-event.ts";
import { continuationOf } from "../../../model/ids/join-set-id.ts";
import { isRecord, spokenKind } from "../../../model/values/spoken-kind.ts";
import type { AppendEvents } from "./append.ts";
import { sql, type Statement } from "../../../sql/statement.ts";
import { isDueAt } from "./delay-requests.ts";
import { faultyField } from "./event-fields.ts";

/** An append is one transaction, and a child or event takes at least one statement. */
const eventsMax = 1_000;
const childrenMax = 1_000;
const withdrawnMax = 1_000;

/** Checks the counts before any value is encoded. @throws HoldfastError `EVENTS_INVALID` */
export function assertCounts(
  id: ExecutionId,
  events: readonly unknown[],
  children: readonly unknown[] = [],
  withdraw: readonly unknown[] = [],
): void {
  if (events.length === 0)
    throw eventsInvalid(id, "none", "the list is empty. Pass at least one event.");
  const isTooMuch =
    events.length > eventsMax || children.length > childrenMax || withdraw.length > withdrawnMax;
  if (isTooMuch)
    throw eventsInvalid(
      id,
      "tooMany",
      `an append takes at most ${eventsMax} events and ${childrenMax} children, and withdraws ${withdrawnMax} delays. Append them in parts.`,
      {
        events: events.length,
        children: children.length,
        ...(withdraw.length > 0 && { withdraw: withdraw.length }),
      },
    );
}

/** Checks the kind before any value is encoded. @throws HoldfastError `EVENTS_INVALID` unless it is an event of a kind that may be appended. */
export function assertKind(id: ExecutionId, event: { readonly kind: string }, index: number): void {
  if (!isRecord(event))
    throw eventsInvalid(
      id,
      "kind",
      `events[${index}] is ${spokenKind(event)}, not an object with a kind.`,
      { path: `events[${index}]` },
    );
  const { kind } = event;
  if (typeof kind !== "string" || !(isHistoryKind(kind) || isControlKind(kind)))
    throw eventsInvalid(id, "kind", `events[${index}].kind is unknown.`, {
      path: `events[${index}].kind`,
    });
  if (kind === "created" || kind === "forked")
    throw eventsInvalid(
      id,
      "kind",
      `"${kind}" is written only by ${kind === "created" ? "create" : "fork"}. Use that.`,
    );
}

/**
 * Checks an append without reading the execution, once its values are encoded. Everything else
 * trusts the log, so every event is checked.
 * @throws HoldfastError `EVENTS_INVALID`
 */
export function assertAppendable(input: AppendEvents): void {
  const { id, events, children, withdraw = [], respondTo } = input;
  assertCounts(id, events, children, withdraw);
  const end = events.findIndex((event) => event.kind === "finished");
  if (end >= 0 && end !== events.length - 1)
    throw eventsInvalid(id, "end", '"finished" must be the last one.');
  events.forEach((event, index) => assertEvent(id, event, index));
  assertStarts(input);
  const other = withdraw.find((delay) => splitDelayId(delay).execution !== id);
  if (other !== undefined) throw eventsInvalid(id, "owner", `${other} is not a delay of it.`);
  const stranger = children?.find((child) => !isOwnChild(id, child.id));
  if (stranger !== undefined)
    throw eventsInvalid(id, "owner", `${stranger.id} is not a child of it.`);
  if (end >= 0 && children?.some((child) => splitToParts(child.id)) === true)
    throw eventsInvalid(
      id,
      "end",
      "they end it, and a run that has ended cannot have new children. Create top-level runs, or end it later.",
    );
  if (respondTo === undefined) return;
  if (respondTo === id || splitToParts(id)?.parent !== respondTo)
    throw eventsInvalid(id, "owner", `${respondTo} is not its parent.`);
  if (end < 0)
    throw eventsInvalid(
      id,
      "end",
      'a parent is answered with the end, so "finished" must be among them.',
    );
}

/** Checks that each start has the execution that its event names. */
function assertStarts({ id, events, starts = [] }: AppendEvents): void {
  const scheduled = events.filter((event) => event.kind === "scheduled");
  scheduled.forEach((event, index) => {
    const { execution, function: name } = event;
    if (splitToParts(execution) !== undefined)
      throw eventsInvalid(id, "owner", `${execution} is a child, not a top-level run.`);
    if (starts[index]?.created.function !== name)
      throw eventsInvalid(
        id,
        "draft",
        `it starts ${execution} as ${name}, which is not among the given children.`,
      );
  });
}

/** True for a child of this execution, and for an execution without a parent. */
function isOwnChild(id: ExecutionId, child: ExecutionId): boolean {
  const parts = splitToParts(child);
  return parts === undefined || parts.parent === id;
}

function assertEvent(id: ExecutionId, event: ExecutionEvent, index: number): void {
  const { kind } = event;
  const fault = faultyField(event, isHistoryEvent(event));
  if (fault !== undefined) {
    const path = `events[${index}].${fault.name}`;
    throw eventsInvalid(id, "field", `${path} of "${kind}" must be ${fault.expected}.`, { path });
  }
  assertOwn(id, event);
}

/**
 * Checks ids in an event. An answer is delivered by the id of the request, so the id must name this
 * execution and the set.
 */
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

/**
 * The extent of an append's changes besides the log. An append with few changes takes fewer
 * statements, and on Postgres is combined with others.
 */

/** Kinds of history events that need more than the version. */
const asking: ReadonlySet<string> = new Set(["joinNext", "waiting", "signalReceived"]);

/**
 * True for workflow events that neither request nor receive a response: only version and deaths
 * change.
 */
export function changesVersionAlone({ at, events, withdraw }: AppendEvents): boolean {
  return (
    withdraw === undefined &&
    isOfOneRun(events) &&
    events.every(
      (event) =>
        isHistoryEvent(event) && !asking.has(event.kind) && !isFound(event) && !isDueAt(event, at),
    )
  );
}

/** A new event ends a row of deaths, unless it shows no progress. */
export function endOfDeaths(events: readonly ExecutionEvent[]): Statement {
  return events.some(showsProgress) ? withoutDeaths : deathsAsBefore;
}

const withoutDeaths = sql`, deaths = 0, alone_deaths = 0`;
const deathsAsBefore = sql``;

/** The number of the run that owns the sets of these events; null when they name no set. */
export function runNamed(events: readonly ExecutionEvent[]): number | null {
  for (const event of events) {
    const joinSet = joinSetIn(event);
    if (joinSet !== undefined) return continuationOf(joinSet);
  }
  return null;
}

function isOfOneRun(events: readonly ExecutionEvent[]): boolean {
  const run = runNamed(events);
  return events.every((event) => {
    const joinSet = joinSetIn(event);
    return joinSet === undefined || continuationOf(joinSet) === run;
  });
}

/**
 * The number of responses that must exist for all of these events to have seen the ones they
 * record.
 */
export function responsesSeen(events: readonly ExecutionEvent[]): number {
  let most = 0;
  for (const event of events) if (isHistoryEvent(event) && event.seen > most) most = event.seen;
  return most;
}

/**
 * The number of responses above which a timeout of a receive may have lost to its message; null
 * when there is no timeout. The general path then looks for the message.
 */
export function responsesAtTimeout(events: readonly ExecutionEvent[]): number | null {
  let least: number | null = null;
  for (const event of events)
    if (event.kind === "receiveTimedOut" && (least === null || event.seen < least))
      least = event.seen;
  return least;
}

/**
 * True for an append that only adds rows and moves the version: its events, the delays that it
 * requests, and its own children without other rows.
 */
export function isQuiet(input: AppendEvents): boolean {
  const { id, events, children = [], starts, respondTo } = input;
  return (
    events.length > 0 &&
    starts === undefined &&
    respondTo === undefined &&
    children.every(
      (child) =>
        splitToParts(child.id)?.parent === id &&
        child.lock === undefined &&
        child.created.tags.length === 0,
    ) &&
    changesVersionAlone(input)
  );
}

/** True for an append of only the end of an execution. */
export function isFinish({ events, children, withdraw }: AppendEvents): boolean {
  return (
    withdraw === undefined &&
    events.length === 1 &&
    events[0]?.kind === "finished" &&
    (children === undefined || children.length === 0)
  );
}
