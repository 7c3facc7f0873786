import { parseProcessId } from "../../model/process-id.ts";
import type { ProcessOutput } from "../../model/process-output.ts";
import type { ProcessSummary } from "../../model/process.ts";
import {
  checkedCount,
  checkedText,
  givenFlag,
  optionsOf,
} from "../../model/shape.ts";
import type { WaitOptions } from "../../sql/database.ts";
import { withValues } from "../damage.ts";
import type { Damaged } from "../damage.ts";
import { nextCursor, textPlace } from "../cursor.ts";
import type { Page, PageOptions } from "../list.ts";
import { checkedLimit } from "../paging.ts";
import type { ProcessSurroundings } from "./context.ts";
import { checkedFilter, listProcesses } from "./list.ts";
import type { ProcessFilter } from "./list.ts";
import {
  countEvents,
  readEnd,
  readEvents,
  readProcess,
  recentEvents,
} from "./read.ts";
import { eventView, keyOf, outputView, recordView } from "./views.ts";
import type { ProcessEventView, ProcessView } from "./views.ts";

export interface ListProcessEventsOptions extends WaitOptions {
  /** Events with a greater number: all unless told. */
  readonly after?: number;
  readonly type?: string;
  /** Only events that caused a wake. */
  readonly wakes?: boolean;
  /** 1 to 1,000; 100 unless told. */
  readonly limit?: number;
}

export interface ProcessEventPage {
  readonly items: readonly ProcessEventView[];
  /** Rows that cannot be read: the list goes on past them. */
  readonly damaged: readonly Damaged[];
  /** Where to go on; undefined at the end. Large events make short pages. */
  readonly next: number | undefined;
}

export interface ListProcessesOptions extends ProcessFilter, PageOptions {}

/** Questions about processes. */
export interface ProcessReads {
  /** A process; undefined when there is none. @throws HoldfastError `CORRUPT_ROW` */
  get(process: string, wait?: WaitOptions): Promise<ProcessView | undefined>;
  /** What a process ended with; undefined while it runs. @throws HoldfastError `PROCESS_NOT_FOUND`, `PROCESS_PRUNED` */
  output(
    process: string,
    wait?: WaitOptions,
  ): Promise<ProcessOutput | undefined>;
  /** Events in order. @throws HoldfastError `PROCESS_NOT_FOUND`, `PROCESS_PRUNED` */
  events(
    process: string,
    options?: ListProcessEventsOptions,
  ): Promise<ProcessEventPage>;
  /** The latest events, in order; fewer than asked for when they are large. @throws HoldfastError `PROCESS_NOT_FOUND`, `PROCESS_PRUNED` */
  recent(
    process: string,
    limit: number,
    wait?: WaitOptions,
  ): Promise<Omit<ProcessEventPage, "next">>;
  /** How many events of a type there are up to a number, that one included. @throws HoldfastError `PROCESS_NOT_FOUND`, `PROCESS_PRUNED` */
  count(
    process: string,
    type: string,
    through?: number,
    wait?: WaitOptions,
  ): Promise<number>;
  /** Processes in the order of their ids: those that run, unless told; `get` shows what was given to one. @throws HoldfastError `OPTION_INVALID`, `CURSOR_INVALID` */
  list(options?: ListProcessesOptions): Promise<Page<ProcessSummary>>;
}

export function processReads(around: ProcessSurroundings): ProcessReads {
  const { database, codec } = around;
  return {
    async get(process, wait) {
      const input = { process: parseProcessId(process) };
      const record = await database.read(readProcess, input, wait);
      return record && recordView(codec, record);
    },
    async output(process, wait) {
      const input = { process: parseProcessId(process) };
      const end = await database.read(readEnd, input, wait);
      return end && outputView(codec, end);
    },
    async events(process, options) {
      const { after = 0, type, wakes, limit, ...wait } = optionsOf(options);
      const input = {
        process: parseProcessId(process),
        after: checkedCount("after", after, { min: -1 }),
        type: type === undefined ? undefined : checkedType(type),
        isWake: givenFlag("wakes", wakes) ?? false,
        limit: checkedLimit(limit),
      };
      const page = await database.read(readEvents, input, wait);
      return eventPage(around, page);
    },
    async recent(process, limit, wait) {
      const input = {
        process: parseProcessId(process),
        limit: checkedCount("limit", limit, { min: 1, max: 1_000 }),
      };
      const page = await database.read(recentEvents, input, wait);
      const { items, damaged } = eventPage(around, page);
      return { items, damaged };
    },
    async count(process, type, through = Number.MAX_SAFE_INTEGER, wait) {
      const input = {
        process: parseProcessId(process),
        type: checkedType(type),
        through: checkedCount("through", through),
      };
      return database.read(countEvents, input, wait);
    },
    list: (options) => listed(around, options),
  };
}

function checkedType(type: string): string {
  return checkedText("The type of an event", type);
}

function eventPage(
  { codec }: ProcessSurroundings,
  page: {
    readonly items: readonly Parameters<typeof eventView>[1][];
    readonly damaged: readonly Damaged[];
    readonly next?: number | undefined;
  },
): ProcessEventPage {
  const { items, damaged } = withValues(
    "holdfast_process_event",
    page,
    keyOf,
    (event) => eventView(codec, event),
  );
  return { items, damaged, next: page.next };
}

async function listed(
  { database }: ProcessSurroundings,
  options: ListProcessesOptions | undefined,
): Promise<Page<ProcessSummary>> {
  const { after, limit, signal, timeout, ...given } = optionsOf(options);
  const filter = checkedFilter(given);
  const { status = "running", waiting, definition, kind, orphaned } = filter;
  const owner = `processes:${JSON.stringify([status, waiting, definition, kind, orphaned])}`;
  const found = await database.read(
    listProcesses,
    {
      filter,
      after: after === undefined ? "" : textPlace(owner, after),
      limit: checkedLimit(limit),
    },
    { signal, timeout },
  );
  const { items, damaged, next } = found;
  return { items, damaged, next: nextCursor(owner, next) };
}
