import { corruptRow } from "../../model/corrupt-row.ts";
import type { HashedText } from "../../model/values/encoded.ts";
import { processPruned } from "../../model/process/errors.ts";
import { parseProcessId, type ProcessId } from "../../model/ids/process-id.ts";
import type { ProcessOutput } from "../../model/process/output.ts";
import type { ProcessRecord } from "../../model/process/process.ts";
import { checkedCount, checkedText, givenFlag } from "../../model/shape.ts";
import type { WaitOptions } from "../../sql/database.ts";
import { row, rows, storeOperation, type Tx } from "../../sql/operation.ts";
import { sql, type Statement } from "../../sql/statement.ts";
import { numberAt } from "../cursor.ts";
import { sift, type Sifted } from "../damage.ts";
import { finishedResult } from "../execution/result-row.ts";
import { list, pageOf, slicedByBytes, type List, type PageOptions, type Place } from "../list.ts";
import { onlyWait, type Call } from "../method.ts";
import {
  eventView,
  outputView,
  recordView,
  type ProcessContext,
  type ProcessEventView,
  type ProcessView,
} from "./context.ts";
import {
  eventColumns,
  eventOf,
  type EventRow,
  type StoredEnd,
  type StoredProcessEvent,
} from "./event-row.ts";
import {
  foundProcess,
  processColumns,
  recordOf,
  type ProcessRoot,
  type ProcessRow,
} from "./process-row.ts";

interface OfProcess {
  readonly process: ProcessId;
}

/** @throws HoldfastError `ID_MALFORMED`, `OPTION_INVALID` */
export function givenProcess(
  _: ProcessContext,
  process: string,
  wait?: WaitOptions,
): Call<OfProcess> {
  return { input: { process: parseProcessId(process) }, wait: onlyWait(wait) };
}

/**
 * Returns a process by its id; undefined when it is unknown.
 * @throws HoldfastError `CORRUPT_ROW`
 */
export const readProcess = storeOperation("readProcess", {
  key: (input) => input.process,
  *one(_: ProcessContext, { process }: OfProcess): Tx<ProcessRecord<HashedText> | undefined> {
    const found = yield* row<ProcessRow>(sql`
      SELECT ${processColumns} FROM holdfast_process p WHERE p.id = ${process}`);
    return found === undefined ? undefined : recordOf(found);
  },
});

export function shownProcess(
  context: ProcessContext,
  record: ProcessRecord<HashedText> | undefined,
): ProcessView | undefined {
  return record && recordView(context, record);
}

/**
 * Returns the end of a process; undefined while it runs.
 * @throws HoldfastError `PROCESS_NOT_FOUND`, `PROCESS_PRUNED`, `CORRUPT_ROW`
 */
export const readEnd = storeOperation("readProcessEnd", {
  key: (input) => input.process,
  *one(_: ProcessContext, { process }: OfProcess): Tx<StoredEnd | undefined> {
    const { key, id, state, row: root } = yield* unprunedProcess(process);
    if (state.endedSequence === null) return undefined;
    const found = yield* row<EventRow>(sql`
      SELECT ${eventColumns} FROM holdfast_process_event e
      WHERE e.process = ${key} AND e.sequence = ${state.endedSequence}`);
    if (found === undefined) throw corruptRow("holdfast_process", id, "ended without an event");
    const event = eventOf({ ...found, id });
    if (event.executionVersion === null || root.execution_id === null)
      return { event, execution: null };
    const result = yield* finishedResult(root.execution_id);
    return { event, execution: result ? { id: root.execution_id, result } : null };
  },
});

export function shownEnd(
  context: ProcessContext,
  end: StoredEnd | undefined,
): ProcessOutput | undefined {
  return end && outputView(context, end);
}

export interface ListProcessEventsOptions extends PageOptions {
  /** Events from this number on; defaults to 1. The registration is 0. */
  readonly from?: number;
  readonly type?: string;
  /** Only events that caused a wake. */
  readonly wakes?: boolean;
}

interface EventFilter {
  readonly process: ProcessId;
  readonly from: number;
  readonly type: string | undefined;
  readonly isWake: boolean;
}

const eventTable = "holdfast_process_event";

function eventKey({ id, sequence }: EventRow): string {
  return `${id}:${sequence}`;
}

function eventItem(context: ProcessContext, found: EventRow): ProcessEventView {
  return eventView(context, eventOf(found));
}

/**
 * Events in order. Large events make short pages.
 * @throws HoldfastError `PROCESS_NOT_FOUND`, `PROCESS_PRUNED`
 */
export const eventList: List<
  ProcessContext,
  [process: string, options?: ListProcessEventsOptions],
  ProcessEventView
> = list("readProcessEvents", {
  table: eventTable,
  given(_: ProcessContext, process: string, options?: ListProcessEventsOptions) {
    const { filter, page } = pageOf(options, ["from", "type", "wakes"]);
    const { from = 1, type, wakes } = filter;
    return {
      filter: {
        process: parseProcessId(process),
        from: checkedCount("from", from),
        type: type === undefined ? undefined : checkedType(type),
        isWake: givenFlag("wakes", wakes) ?? false,
      },
      page,
    };
  },
  *slice(_, { process, from, type, isWake }: EventFilter, bounds) {
    const { key, id } = yield* unprunedProcess(process);
    const ofType = type === undefined ? sql`` : sql`AND e.type = ${type}`;
    const wakes = isWake ? sql`AND e.wake IS NOT NULL` : sql``;
    const { rows: found, next } = yield* slicedByBytes(
      bounds,
      ({ sequence }: EventRow) => [sequence],
      ...eventReads(
        (after) => sql`
          FROM holdfast_process_event e
          WHERE e.process = ${key} AND e.sequence >= ${after === undefined ? from : numberAt(after, 0) + 1} ${ofType} ${wakes}
          ORDER BY e.sequence`,
      ),
    );
    return { rows: found.map((each) => ({ ...each, id })), next };
  },
  keyOf: eventKey,
  itemOf: eventItem,
});

/**
 * Builds the two reads, of the sizes of events and of the events. They are the same from `FROM` on.
 */
function eventReads(
  next: (after: Place | undefined) => Statement,
): [
  (after: Place | undefined, count: number) => Tx<readonly number[]>,
  (after: Place | undefined, count: number) => Tx<readonly EventRow[]>,
] {
  return [
    function* (after, count) {
      const found = yield* rows<{ readonly bytes: number }>(sql`
        SELECT COALESCE(octet_length(e.payload), 0) + COALESCE(octet_length(e.output), 0) AS bytes
        ${next(after)} LIMIT ${count}`);
      return found.map(({ bytes }) => bytes);
    },
    function* (after, count) {
      return yield* rows<EventRow>(sql`SELECT ${eventColumns} ${next(after)} LIMIT ${count}`);
    },
  ];
}

interface RecentEvents extends OfProcess {
  readonly limit: number;
}

/** @throws HoldfastError `ID_MALFORMED`, `OPTION_INVALID` */
export function givenRecent(
  _: ProcessContext,
  process: string,
  limit: number,
  wait?: WaitOptions,
): Call<RecentEvents> {
  const input = {
    process: parseProcessId(process),
    limit: checkedCount("limit", limit, { min: 1, max: 1_000 }),
  };
  return { input, wait: onlyWait(wait) };
}

/** The latest events, in order. @throws HoldfastError `PROCESS_NOT_FOUND`, `PROCESS_PRUNED` */
export const recentEvents = storeOperation("recentProcessEvents", {
  key: (input) => input.process,
  *one(context: ProcessContext, { process, limit }: RecentEvents): Tx<Sifted<ProcessEventView>> {
    const { key, id } = yield* unprunedProcess(process);
    const { rows: found } = yield* slicedByBytes(
      { after: undefined, limit },
      ({ sequence }: EventRow) => [sequence],
      ...eventReads(
        () => sql`
          FROM holdfast_process_event e
          WHERE e.process = ${key} AND e.sequence > 0 ORDER BY e.sequence DESC`,
      ),
    );
    const inOrder = found.toReversed().map((each) => ({ ...each, id }));
    return sift(eventTable, inOrder, eventKey, (each) => eventItem(context, each));
  },
});

interface CountEvents extends OfProcess {
  readonly type: string;
  /** The last number that is counted. */
  readonly through: number;
}

/** @throws HoldfastError `ID_MALFORMED`, `OPTION_INVALID`, `NAME_INVALID` */
export function givenCount(
  _: ProcessContext,
  process: string,
  type: string,
  through: number = Number.MAX_SAFE_INTEGER,
  wait?: WaitOptions,
): Call<CountEvents> {
  const input = {
    process: parseProcessId(process),
    type: checkedType(type),
    through: checkedCount("through", through),
  };
  return { input, wait: onlyWait(wait) };
}

export function checkedType(type: string): string {
  return checkedText("The type of an event", type);
}

/**
 * Counts the events of a type up to a number.
 * @throws HoldfastError `PROCESS_NOT_FOUND`, `PROCESS_PRUNED`
 */
export const countEvents = storeOperation("countProcessEvents", {
  key: (input) => input.process,
  *one(_: ProcessContext, { process, type, through }: CountEvents): Tx<number> {
    const { key } = yield* unprunedProcess(process);
    const counted = yield* row<{ readonly count: number }>(sql`
      SELECT COUNT(*) AS count FROM holdfast_process_event
      WHERE process = ${key} AND type = ${type} AND sequence <= ${through}`);
    return counted?.count ?? 0;
  },
});

interface NextEvent extends OfProcess {
  /** Only events after this number. */
  readonly after: number;
  readonly type: string | undefined;
}

/**
 * The first event after a number; undefined when it has not come yet.
 * @throws HoldfastError `PROCESS_NOT_FOUND`, `PROCESS_PRUNED`, `CORRUPT_ROW`
 */
export const nextEvent = storeOperation("nextProcessEvent", {
  key: (input) => input.process,
  *one(_: ProcessContext, { process, after, type }: NextEvent): Tx<StoredProcessEvent | undefined> {
    const { key, id } = yield* unprunedProcess(process);
    const ofType = type === undefined ? sql`` : sql`AND e.type = ${type}`;
    const found = yield* row<EventRow>(sql`
      SELECT ${eventColumns} FROM holdfast_process_event e
      WHERE e.process = ${key} AND e.sequence > ${after} ${ofType}
      ORDER BY e.sequence LIMIT 1`);
    return found === undefined ? undefined : eventOf({ ...found, id });
  },
});

interface ReadSignal extends OfProcess {
  readonly type: string;
  readonly ordinal: number;
}

/**
 * The n-th signal of a type; undefined when it has not come yet.
 * @throws HoldfastError `PROCESS_NOT_FOUND`, `PROCESS_PRUNED`, `CORRUPT_ROW`
 */
export const readSignal = storeOperation("readProcessSignal", {
  key: (input) => input.process,
  *one(
    _: ProcessContext,
    { process, type, ordinal }: ReadSignal,
  ): Tx<StoredProcessEvent | undefined> {
    const { key, id } = yield* unprunedProcess(process);
    const found = yield* row<EventRow>(sql`
      SELECT ${eventColumns} FROM holdfast_process_event e
      WHERE e.process = ${key} AND e.type = ${type} AND e.ordinal = ${ordinal}`);
    return found === undefined ? undefined : eventOf({ ...found, id });
  },
});

function* unprunedProcess(id: ProcessId): Tx<ProcessRoot> {
  const root = yield* foundProcess(id);
  if (root.state.prunedAt !== null) throw processPruned(id);
  return root;
}
