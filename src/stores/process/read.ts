import type { Encoded } from "../../model/encoded.ts";
import { corruptRow } from "../../model/corrupt-row.ts";
import { processPruned } from "../../model/process-errors.ts";
import type { ProcessId } from "../../model/process-id.ts";
import type { ProcessRecord } from "../../model/process.ts";
import { row, rows, plainOperation } from "../../sql/operation.ts";
import type { Operation, Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { finishedResult } from "../execution/standing-row.ts";
import { ReadBudget, pageCharactersMax, readWithin } from "../read-budget.ts";
import { sift } from "../damage.ts";
import type { Damaged } from "../damage.ts";
import { eventColumns, eventOf } from "./event-row.ts";
import type { EventRow, StoredProcessEvent } from "./event-row.ts";
import { foundProcess, processColumns, recordOf } from "./process-row.ts";
import type { ProcessRoot, ProcessRow } from "./process-row.ts";

/** A process by its id, or nothing. @throws HoldfastError `CORRUPT_ROW` */
export const readProcess: Operation<
  { readonly process: ProcessId },
  ProcessRecord<Encoded> | undefined
> = plainOperation("readProcess", {
  key: (input: { readonly process: ProcessId }) => input.process,
  *one({ process }) {
    const found = yield* row<ProcessRow>(sql`
      SELECT ${processColumns} FROM holdfast_process p WHERE p.id = ${process}`);
    return found === undefined ? undefined : recordOf(found);
  },
});

export interface ReadEvents {
  readonly process: ProcessId;
  /** Those with a greater number. */
  readonly after: number;
  readonly type: string | undefined;
  /** Only those that caused a wake. */
  readonly isWake: boolean;
  readonly limit: number;
}

export interface StoredEventPage {
  readonly items: readonly StoredProcessEvent[];
  readonly damaged: readonly Damaged[];
  /** Where to go on: the number of the last event looked at. Undefined at the end. */
  readonly next: number | undefined;
}

/** Events behind a cursor, in order. Large ones make short pages. @throws HoldfastError `PROCESS_NOT_FOUND`, `PROCESS_PRUNED` */
export const readEvents: Operation<ReadEvents, StoredEventPage> =
  plainOperation("readProcessEvents", {
    key: (input: ReadEvents) => input.process,
    *one({ process, after, type, isWake, limit }) {
      const { key, id } = yield* unprunedProcess(process);
      const ofType = type === undefined ? sql`` : sql`AND e.type = ${type}`;
      const wakes = isWake ? sql`AND e.wake IS NOT NULL` : sql``;
      const { rows: found, isAll } = yield* readWithin(
        new ReadBudget(pageCharactersMax),
        limit + 1,
        function* (last: EventRow | undefined, count) {
          return yield* rows<EventRow>(sql`
            SELECT ${eventColumns} FROM holdfast_process_event e
            WHERE e.process = ${key} AND e.sequence > ${last?.sequence ?? after} ${ofType} ${wakes}
            ORDER BY e.sequence LIMIT ${count}`);
        },
        sizeOf,
      );
      const page = found.slice(0, limit);
      const hasMore = !isAll || found.length > limit;
      return {
        ...siftedEvents(id, page),
        next: hasMore ? page.at(-1)?.sequence : undefined,
      };
    },
  });

function sizeOf({ payload, output }: EventRow): number {
  return (payload?.length ?? 0) + (output?.length ?? 0);
}

function siftedEvents(
  id: ProcessId,
  found: readonly EventRow[],
): Omit<StoredEventPage, "next"> {
  return sift(
    "holdfast_process_event",
    found,
    ({ sequence }) => `${id}:${sequence}`,
    (event) => eventOf({ ...event, id }),
  );
}

export interface RecentEvents {
  readonly process: ProcessId;
  readonly limit: number;
}

/** The latest events, in order. @throws HoldfastError `PROCESS_NOT_FOUND`, `PROCESS_PRUNED` */
export const recentEvents: Operation<
  RecentEvents,
  Omit<StoredEventPage, "next">
> = plainOperation("recentProcessEvents", {
  key: (input: RecentEvents) => input.process,
  *one({ process, limit }) {
    const { key, id } = yield* unprunedProcess(process);
    const { rows: found } = yield* readWithin(
      new ReadBudget(pageCharactersMax),
      limit,
      function* (last: EventRow | undefined, count) {
        const before = last?.sequence ?? Number.MAX_SAFE_INTEGER;
        return yield* rows<EventRow>(sql`
          SELECT ${eventColumns} FROM holdfast_process_event e
          WHERE e.process = ${key} AND e.sequence > 0 AND e.sequence < ${before}
          ORDER BY e.sequence DESC LIMIT ${count}`);
      },
      sizeOf,
    );
    return siftedEvents(id, found.toReversed());
  },
});

export interface CountEvents {
  readonly process: ProcessId;
  readonly type: string;
  /** The last number that counts. */
  readonly through: number;
}

/** How many events of a type there are up to a number. @throws HoldfastError `PROCESS_NOT_FOUND`, `PROCESS_PRUNED` */
export const countEvents: Operation<CountEvents, number> = plainOperation(
  "countProcessEvents",
  {
    key: (input: CountEvents) => input.process,
    *one({ process, type, through }) {
      const { key } = yield* unprunedProcess(process);
      const counted = yield* row<{ readonly count: number }>(sql`
        SELECT COUNT(*) AS count FROM holdfast_process_event
        WHERE process = ${key} AND type = ${type} AND sequence <= ${through}`);
      return counted?.count ?? 0;
    },
  },
);

export interface ReadSignal {
  readonly process: ProcessId;
  readonly type: string;
  readonly ordinal: number;
}

/** The n-th signal of a type; undefined when it has not come yet. @throws HoldfastError `PROCESS_NOT_FOUND`, `PROCESS_PRUNED`, `CORRUPT_ROW` */
export const readSignal: Operation<ReadSignal, StoredProcessEvent | undefined> =
  plainOperation("readProcessSignal", {
    key: (input: ReadSignal) => input.process,
    *one({ process, type, ordinal }) {
      const { key, id } = yield* unprunedProcess(process);
      const found = yield* row<EventRow>(sql`
      SELECT ${eventColumns} FROM holdfast_process_event e
      WHERE e.process = ${key} AND e.type = ${type} AND e.ordinal = ${ordinal}`);
      return found === undefined ? undefined : eventOf({ ...found, id });
    },
  });

/** The event that ended a process, and the result of its execution if it ended with that. */
export interface StoredEnd {
  readonly event: StoredProcessEvent;
  readonly result: Encoded | null;
}

/** How a process ended; undefined while it runs. @throws HoldfastError `PROCESS_NOT_FOUND`, `PROCESS_PRUNED`, `CORRUPT_ROW` */
export const readEnd: Operation<
  { readonly process: ProcessId },
  StoredEnd | undefined
> = plainOperation("readProcessEnd", {
  key: (input: { readonly process: ProcessId }) => input.process,
  *one({ process }) {
    const { key, id, state, row: root } = yield* unprunedProcess(process);
    if (state.endedSequence === null) return undefined;
    const found = yield* row<EventRow>(sql`
      SELECT ${eventColumns} FROM holdfast_process_event e
      WHERE e.process = ${key} AND e.sequence = ${state.endedSequence}`);
    if (found === undefined)
      throw corruptRow("holdfast_process", id, "ended by no event");
    const event = eventOf({ ...found, id });
    if (event.executionVersion === null || root.execution_id === null)
      return { event, result: null };
    const ended = yield* finishedResult(root.execution_id);
    return { event, result: ended?.result ?? null };
  },
});

function* unprunedProcess(id: ProcessId): Tx<ProcessRoot> {
  const root = yield* foundProcess(id);
  if (root.state.prunedAt !== null) throw processPruned(id);
  return root;
}
