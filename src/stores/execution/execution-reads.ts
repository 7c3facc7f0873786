import type { Created, LoggedEvent, LoggedResponse } from "../../model/execution/event.ts";
import type { RecordedResult } from "../../model/execution/result.ts";
import type { WaitOptions } from "../../sql/database.ts";
import { lists, type Page, type PageOptions } from "../list.ts";
import { readsLocking, writes, type Method } from "../method.ts";
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
import { questionList, type ListQuestionsOptions, type Question } from "./read/questions.ts";
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
import { lockReadExecution } from "./state-row.ts";

const reads = readsLocking(lockReadExecution);

type OfOne<Out> = Method<[id: string, wait?: WaitOptions], Out>;

/** The half of the page that reads executions and keeps people's notes about them. */
export interface ExecutionReads {
  /** Returns an execution with its status. @throws HoldfastError `EXECUTION_NOT_FOUND`, `CORRUPT_ROW` */
  readonly get: OfOne<ExecutionView>;
  /**
   * Returns the same as a lock would, including the first history events and responses, without
   * locking the execution: use it for replay. The execution may have ended or be locked by another
   * worker.
   * @throws HoldfastError `EXECUTION_NOT_FOUND`, `CORRUPT_ROW`, `VALUE_MALFORMED`, `PAYLOAD_CODEC_FAILED`
   * @example
   * const { input, seed, history, responses } = await log.load("order-42");
   */
  readonly load: OfOne<LoadedExecution>;
  /** The input and options of its creation. @throws HoldfastError `EXECUTION_NOT_FOUND`, `CORRUPT_ROW` */
  readonly created: OfOne<Created<unknown>>;
  /** The result; undefined while the execution has not finished. @throws HoldfastError `EXECUTION_NOT_FOUND`, `CORRUPT_ROW` */
  readonly result: OfOne<RecordedResult | undefined>;
  /**
   * The event of a version.
   * @throws HoldfastError `EXECUTION_NOT_FOUND`, with `details.missing` "event" when only that is missing; `CORRUPT_ROW`
   */
  readonly event: Method<[id: string, version: number, wait?: WaitOptions], LoggedEvent<unknown>>;
  /** The newest event. @throws HoldfastError `EXECUTION_NOT_FOUND`, `CORRUPT_ROW` */
  readonly lastEvent: OfOne<LoggedEvent<unknown>>;
  /**
   * Events by version, with the hash of their backtrace if requested. To follow a log, ask again
   * from the version after the last known one.
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
   * Executions, newest first, each with its status, the end of its sleep, and the reason why it is
   * paused, being cancelled or parked. A filter without an index of its own searches 10,000
   * executions per page. A page may then be short or empty and still have a next one: `looked` is
   * the number of executions it searched. Running, paused, cancelling and parked executions are
   * found without a search.
   * @throws HoldfastError `OPTION_INVALID`, `CURSOR_INVALID`
   * @example
   * for (const { id, interruption } of (await log.list({ status: "parked" })).items) console.log(id, interruption);
   * @example
   * const failed = await log.list({ status: "failed", functionPrefix: "orders/" });
   * const later = await log.list({ newerThan: failed.items[0], status: "failed", functionPrefix: "orders/" });
   */
  readonly list: Method<[options?: ListExecutionsOptions], Page<ExecutionSummary>>;
  /**
   * The open questions of all runs, newest first: external executions that can still be answered.
   * @throws HoldfastError `OPTION_INVALID`, `CURSOR_INVALID`
   * @example
   * for (const { id, about } of (await log.questions({ tag: "refunds" })).items) console.log(id, about);
   */
  readonly questions: Method<[options?: ListQuestionsOptions], Page<Question>>;
  /**
   * The unfinished executions of one function that are being cancelled, by id: for the worker that
   * ends them, children first. Each marking announces `execution.cancelling` with the function as
   * its key.
   * @throws HoldfastError `NAME_INVALID`, `OPTION_INVALID`, `CURSOR_INVALID`
   */
  readonly cancelling: Method<[options: CancellingOptions], Page<CancellingExecution>>;
  /** An execution and all its descendants, each after its parent. @throws HoldfastError `EXECUTION_NOT_FOUND`, `CURSOR_INVALID` */
  readonly tree: Method<[id: string, options?: PageOptions], Page<ExecutionSummary>>;
  /** Counts executions by function and status, in slices. @throws HoldfastError `ABORTED`, `OPTION_INVALID` */
  count(options?: CountOptions): Promise<ExecutionCounts>;
  /**
   * Adds 1 to 200 lines to the log for people, all or none. A repeated call adds them twice: if the
   * outcome is unknown, read the last lines first.
   * @throws HoldfastError `EXECUTION_NOT_FOUND`, `TEXT_INVALID`, `VALUE_TOO_LARGE`, `NOT_SERIALIZABLE`, `OPTION_INVALID`
   * @example
   * await log.log("order-42", [{ level: "info", message: "packed", data: { boxes: 2 } }]);
   */
  readonly log: Method<[id: string, entries: readonly LogEntry[], wait?: WaitOptions], void>;
  /**
   * Lines in the order of writing. To follow them, ask again from the key after the last known one.
   * @throws HoldfastError `EXECUTION_NOT_FOUND`, `OPTION_INVALID`, `CURSOR_INVALID`
   */
  readonly logs: Method<[id: string, options?: ListLogsOptions], Page<LogLine>>;
  /**
   * Records the source locations of the events of 1 to 200 ranges. May be repeated.
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
    events: lists(context, eventList, lockReadExecution),
    responses: lists(context, responseList, lockReadExecution),
    list: lists(context, executionList),
    questions: lists(context, questionList),
    cancelling: lists(context, cancellingList),
    tree: lists(context, executionTree),
    count: (given) => countExecutions(context, given),
    log: writes(context, appendLogs, givenLog),
    logs: lists(context, logList),
    addBacktraces: writes(context, appendBacktraces, givenBacktraces),
    backtrace: reads(context, readBacktrace, givenBacktrace),
  };
}
