import type { Created, LoggedEvent, LoggedResponse } from "../../model/execution/event.ts";
import type { ExecutionResult } from "../../model/execution/result.ts";
import type { WaitOptions } from "../../sql/database.ts";
import { lists, type Page, type PageOptions } from "../list.ts";
import { reads, writes, type Method } from "../method.ts";
import {
  cancellingList,
  type CancellingExecution,
  type CancellingOptions,
} from "./control/cancelling.ts";
import { loadExecution } from "./lock/load.ts";
import type { LoadedExecution } from "./lock/locked.ts";
import {
  appendBacktraces,
  givenBacktrace,
  givenBacktraces,
  readBacktrace,
  type BacktraceDraft,
  type BacktraceView,
  type WhichBacktrace,
} from "./read/backtraces.ts";
import { countExecutions, type CountOptions, type ExecutionCounts } from "./read/counts.ts";
import { eventList, type ListEventsOptions } from "./read/events.ts";
import type { ListExecutionsOptions } from "./read/list-filter.ts";
import { executionList } from "./read/list.ts";
import {
  appendLogs,
  givenLog,
  logList,
  type ListLogsOptions,
  type LogEntry,
  type LogLine,
} from "./read/logs.ts";
import {
  givenEvent,
  givenRead,
  readCreated,
  readEvent,
  readExecution,
  readLastEvent,
  readResult,
  shownCreated,
  shownEvent,
  shownExecution,
  shownResult,
  type ExecutionView,
} from "./read/read.ts";
import { responseList, type ListResponsesOptions } from "./read/responses.ts";
import type { ExecutionSummary } from "./read/summary.ts";
import { executionTree } from "./read/tree.ts";
import type { ExecutionContext } from "./context.ts";

type OfOne<Out> = Method<[id: string, wait?: WaitOptions], Out>;

/** The half of the page that shows what there is, and keeps what people note about it. */
export interface ExecutionReads {
  /** Where an execution stands. @throws HoldfastError `EXECUTION_NOT_FOUND`, `CORRUPT_ROW` */
  readonly get: OfOne<ExecutionView>;
  /**
   * What a lock would give of an execution, its first history events and
   * responses included, without locking it: for replaying it. Also of one that
   * has ended, or that somebody else has.
   * @throws HoldfastError `EXECUTION_NOT_FOUND`, `CORRUPT_ROW`, `VALUE_MALFORMED`, `PAYLOAD_CODEC_FAILED`
   * @example
   * const { input, seed, history, responses } = await log.load("order-42");
   */
  readonly load: OfOne<LoadedExecution>;
  /** What it was created with. @throws HoldfastError `EXECUTION_NOT_FOUND`, `CORRUPT_ROW` */
  readonly created: OfOne<Created<unknown>>;
  /** How it ended; undefined while it has not. @throws HoldfastError `EXECUTION_NOT_FOUND`, `CORRUPT_ROW` */
  readonly result: OfOne<ExecutionResult | undefined>;
  /**
   * The event of a version.
   * @throws HoldfastError `EXECUTION_NOT_FOUND`, with `details.missing` "event" when only that is missing; `CORRUPT_ROW`
   */
  readonly event: Method<[id: string, version: number, wait?: WaitOptions], LoggedEvent<unknown>>;
  /** The newest event. @throws HoldfastError `EXECUTION_NOT_FOUND`, `CORRUPT_ROW` */
  readonly lastEvent: OfOne<LoggedEvent<unknown>>;
  /**
   * Events by version, with the hash of their backtrace when asked for. To
   * follow a log, ask again from the version after the last one known.
   * @throws HoldfastError `EXECUTION_NOT_FOUND`, `OPTION_INVALID`, `CURSOR_INVALID`
   * @example
   * const { items, next } = await log.events("order-42", { kinds: ["stepFinished"] });
   */
  readonly events: Method<
    [id: string, options?: ListEventsOptions],
    Page<LoggedEvent<unknown> & { readonly backtrace?: string }>
  >;
  /**
   * Responses by number.
   * @throws HoldfastError `EXECUTION_NOT_FOUND`, `OPTION_INVALID`, `CURSOR_INVALID`
   * @example
   * const newest = await log.responses("order-42", { backward: true, limit: 10 });
   */
  readonly responses: Method<
    [id: string, options?: ListResponsesOptions],
    Page<LoggedResponse<unknown>>
  >;
  /**
   * Executions, newest first, each with its status, until when it sleeps, and
   * why it is paused, being cancelled or parked. A page may be short and have a
   * next one: it looks at 2,000 rows and no more; those that are run, or were
   * interrupted, it finds without looking at others.
   * @throws HoldfastError `OPTION_INVALID`, `CURSOR_INVALID`
   * @example
   * for (const { id, interruption } of (await log.list({ status: "parked" })).items) console.log(id, interruption);
   * @example
   * const failed = await log.list({ status: "failed", functionPrefix: "orders/" });
   * const later = await log.list({ newerThan: failed.items[0], status: "failed", functionPrefix: "orders/" });
   */
  readonly list: Method<[options?: ListExecutionsOptions], Page<ExecutionSummary>>;
  /**
   * What is being cancelled and has not ended, of one function, by id: for the
   * worker that ends it, its children first. Each marking announces
   * `execution.cancelling` with the function as its key.
   * @throws HoldfastError `NAME_INVALID`, `OPTION_INVALID`, `CURSOR_INVALID`
   */
  readonly cancelling: Method<[options: CancellingOptions], Page<CancellingExecution>>;
  /** An execution and all below it, each after its parent. @throws HoldfastError `EXECUTION_NOT_FOUND`, `CURSOR_INVALID` */
  readonly tree: Method<[id: string, options?: PageOptions], Page<ExecutionSummary>>;
  /** How many there are of each function and status, counted in slices. @throws HoldfastError `ABORTED`, `OPTION_INVALID` */
  count(options?: CountOptions): Promise<ExecutionCounts>;
  /**
   * Adds lines to the log for people, all or none: 1 to 200. Repeated, it adds
   * them twice: when the outcome is unknown, look at the last lines first.
   * @throws HoldfastError `EXECUTION_NOT_FOUND`, `TEXT_INVALID`, `VALUE_TOO_LARGE`, `NOT_SERIALIZABLE`, `OPTION_INVALID`
   * @example
   * await log.log("order-42", [{ level: "info", message: "packed", data: { boxes: 2 } }]);
   */
  readonly log: Method<[id: string, entries: readonly LogEntry[], wait?: WaitOptions], void>;
  /**
   * Lines in the order of writing. To follow them, ask again from the key after
   * the last one known.
   * @throws HoldfastError `EXECUTION_NOT_FOUND`, `OPTION_INVALID`, `CURSOR_INVALID`
   */
  readonly logs: Method<[id: string, options?: ListLogsOptions], Page<LogLine>>;
  /**
   * Tells where in the code the events of some ranges came from: 1 to 200. May
   * be repeated.
   * @throws HoldfastError `EXECUTION_NOT_FOUND`, `BACKTRACE_EXISTS`, `TEXT_INVALID`, `VALUE_TOO_LARGE`, `OPTION_INVALID`
   */
  readonly addBacktraces: Method<
    [id: string, ranges: readonly BacktraceDraft[], wait?: WaitOptions],
    void
  >;
  /**
   * The first or the last backtrace, or the innermost one that holds a version.
   * @throws HoldfastError `EXECUTION_NOT_FOUND`, `BACKTRACE_NOT_FOUND`, `OPTION_INVALID`
   * @example
   * const { stack } = await log.backtrace("order-42", { version: 7 });
   */
  readonly backtrace: Method<
    [id: string, which: WhichBacktrace, wait?: WaitOptions],
    BacktraceView
  >;
}

export function executionReads(context: ExecutionContext): ExecutionReads {
  return {
    get: reads(context, readExecution, givenRead, shownExecution),
    load: reads(context, loadExecution, givenRead),
    created: reads(context, readCreated, givenRead, shownCreated),
    result: reads(context, readResult, givenRead, shownResult),
    event: reads(context, readEvent, givenEvent, shownEvent),
    lastEvent: reads(context, readLastEvent, givenRead, shownEvent),
    events: lists(context, eventList),
    responses: lists(context, responseList),
    list: lists(context, executionList),
    cancelling: lists(context, cancellingList),
    tree: lists(context, executionTree),
    count: (given) => countExecutions(context, given),
    log: writes(context, appendLogs, givenLog),
    logs: lists(context, logList),
    addBacktraces: writes(context, appendBacktraces, givenBacktraces),
    backtrace: reads(context, readBacktrace, givenBacktrace),
  };
}
