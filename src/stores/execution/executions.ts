import type { LoggedResponse } from "../../model/execution/event.ts";
import type { ExecutionId } from "../../model/ids/execution-id.ts";
import type { GivenEvent } from "../../model/execution/given-event.ts";
import type { OwnerId } from "../../model/ids/prefixed-id.ts";
import type { ExecutionResult, RecordedResult } from "../../model/execution/result.ts";
import type { Database, WaitOptions } from "../../sql/database.ts";
import type { StoreOptions } from "../context.ts";
import { reads, writes, type Method } from "../method.ts";
import type { SweepOptions } from "../removal.ts";
import { executionContext } from "./context.ts";
import { cancels } from "./control/force.ts";
import {
  cancelActivity,
  givenProgress,
  ofExecution,
  pauseExecution,
  setProgress,
  unparkExecution,
  unpauseExecution,
  type CancelOptions,
  type ProgressOptions,
} from "./control/lifecycle.ts";
import {
  givenAnswer,
  givenResolve,
  resolveExternal,
  shownReply,
  shownResolved,
  type AnswerReply,
} from "./control/resolve.ts";
import {
  givenReceiveSignal,
  givenSendSignal,
  receiveSignal,
  sendSignal,
  shownReceived,
  type ReceiveOptions,
  type SignalOptions,
} from "./control/signals.ts";
import { forkExecution, givenFork, givenRetry, type ForkOptions } from "./fork/fork.ts";
import {
  createAndLock,
  extendLock,
  givenCreateLocked,
  givenLock,
  givenUnlock,
  lockExecution,
  type UnlockOptions,
} from "./lock/lock.ts";
import type { LockOptions } from "./lock/terms.ts";
import {
  givenLockPending,
  lockPending,
  type LockPendingOptions,
  type LockPendingOutcome,
} from "./lock/lock-pending.ts";
import type { LockedExecution } from "./lock/locked.ts";
import { givenRenew, renewLeases, type HeldRun, type RenewOptions } from "./lock/renew.ts";
import {
  waitForPending,
  waitForResponses,
  waitForResult,
  type PendingWaitOptions,
} from "./lock/wait.ts";
import type { AppendOutcome } from "./log/append-to.ts";
import {
  appendEvents,
  givenAppend,
  givenFinish,
  type AppendOptions,
  type FinishOptions,
} from "./log/append.ts";
import {
  createExecution,
  givenCreate,
  shownNew,
  type CreatedExecution,
  type ExecutionDraft,
} from "./log/create.ts";
import { ResultLooks } from "./read/result-looks.ts";
import { eraseExecution, type EraseProgress } from "./removal/erase.ts";
import { pruneHistory, type PruneOptions } from "./removal/prune.ts";
import { removeFinished, type RetentionPolicy, type RetentionReport } from "./removal/retention.ts";
import {
  answerDelay,
  givenCancelDelay,
  givenPauseDelay,
  givenUnpauseDelay,
  pauseDelay,
} from "./timers/delays.ts";
import { earliestTimer, givenTimerWait } from "./timers/due.ts";
import { waitForTimer, type TimerWaitOptions } from "./timers/expire.ts";
import { expireTimers, type ExpireOptions, type ExpireReport } from "./timers/expire-timers.ts";
import { releaseDead, type ReleaseReport } from "./timers/release.ts";
import { executionReads, type ExecutionReads } from "./execution-reads.ts";

/** Methods that take only the id of a run or of a delay. */
type OfOne<Out> = Method<[id: string, wait?: WaitOptions], Out>;
type OfLifecycle = OfOne<{
  readonly nextVersion: number;
  readonly isChanged: boolean;
}>;
type OfDelay<Out> = Method<[delay: string, wait?: WaitOptions], Out>;

/** The execution log of a database: the history of workflows and activities, and their locks. */
export interface Executions extends ExecutionReads {
  /**
   * Creates a run, or finds the one with the same id, function and input. To retry the call
   * safely, pass an id of your own. If a parent requests a child, create the child in that same
   * append. For a child created separately, only `maintenance.check` compares its input with the
   * requested one.
   * @throws HoldfastError `EXECUTION_EXISTS`, `EXECUTION_ERASED`, `EXECUTION_BEING_REMOVED`, `ID_MALFORMED`, `NAME_INVALID`, `OPTION_INVALID`, `NOT_SERIALIZABLE`, `VALUE_TOO_LARGE`;
   *   of a child's parent `EXECUTION_NOT_FOUND`, `EXECUTION_FINISHED`, `EXECUTION_CANCELLING`
   * @example await log.create({ id: "order-42", function: "orders/fulfil", input: { cents: 500 } });
   */
  readonly create: Method<[draft: ExecutionDraft, wait?: WaitOptions], CreatedExecution>;
  /**
   * Appends events from `version` on, with the children that they request: at most 1,000 of each,
   * all or nothing. For each run that a "scheduled" event starts, the outcome reports the
   * result; a taken id does not fail the call. Children marked `locked` are returned locked, as by
   * `createLocked`. To retry, pass the same version and events: if the log already holds them, the
   * outcome is the same as the first time.
   * @throws HoldfastError `VERSION_CONFLICT`, `EXECUTION_NOT_FOUND`, `EXECUTION_FINISHED`, `LOCK_LOST`, `EVENTS_INVALID`, `DELAY_EXISTS`, `EXECUTION_EXISTS`,
   *   `EXECUTION_PAUSED`, `EXECUTION_CANCELLING`, `EXECUTION_PARKED`, `NOT_SERIALIZABLE`, `VALUE_TOO_LARGE`, and for children those of `createLocked`
   * @example
   * const { nextVersion } = await log.append("order-42", 2, [
   *   { kind: "stepFinished", name: "charge", outcome: "completed", value: { receipt: 7 } },
   * ], { fence: locked.holder });
   * @example
   * const append = log.append.prepare("order-42", 2, events);
   * await database.write("ship and bill", function* () {
   *   yield* append();
   *   yield* run(sql`UPDATE invoice SET state = 'sent' WHERE id = 42`);
   * });
   */
  readonly append: Method<
    [id: string, version: number, events: readonly GivenEvent[], options?: AppendOptions],
    AppendOutcome
  >;
  /**
   * Appends the given `events`, if any, then the end of the run, and notifies the parent. To
   * retry, pass the same version and an equal result.
   * @throws HoldfastError as `append` does, and `OPTION_INVALID` for an invalid result.
   * @example await log.finish("order-42", 3, { kind: "completed", value: "shipped" }, { fence: locked.holder });
   */
  readonly finish: Method<
    [id: string, version: number, result: ExecutionResult, options?: FinishOptions],
    AppendOutcome
  >;
  /**
   * Copies a run up to a version into a new one, which continues from there. To retry the
   * call safely, pass an id of your own.
   * @throws HoldfastError `EXECUTION_NOT_FOUND`, `FORK_POINT_INVALID`, `FORK_TOO_LARGE`, `EXECUTION_EXISTS`, `EXECUTION_ERASED`, `EXECUTION_BEING_REMOVED`, `EVENTS_INVALID` for the id of a child
   * @example const { id } = await log.fork("order-42", 17, { id: "order-42-again" });
   */
  readonly fork: Method<[source: string, version: number, options?: ForkOptions], CreatedExecution>;
  /**
   * Retries a failed run from the point of failure, as a new run. To retry the call safely, pass an
   * id of your own.
   * @throws HoldfastError `NOT_FAILED`, and those of `fork`
   */
  readonly retry: Method<[source: string, options?: ForkOptions], CreatedExecution>;

  /**
   * Locks due runs. Functions share the limit, those with less `load` first. Of every four places
   * of a function, three go to runs that a worker has had before and one to a new run, while both
   * are due. The longest due of each kind comes first, and `debt` carries that count from one call to the next.
   * Runs parked under other code versions are included; runs parked under the given one are not.
   * Unreadable runs are skipped and reported. A second call by the same holder locks
   * other runs. If the response is lost, the runs that it locked become due again when their leases
   * end.
   *
   * One call skips at most 1,000 rows that are unreadable or being locked by others. With a limit
   * per key, it also skips at most 1,000 runs that wait for a full key. Beyond those it still finds
   * runs without a key and one run of each of the next 200 keys. Each call resumes where the
   * previous one stopped: a free key among n waiting ones is found within n / 200 calls.
   * @throws HoldfastError `LOCK_EXPIRY_INVALID`, `OPTION_INVALID`, `NAME_INVALID`, `ID_MALFORMED`, `DURATION_INVALID`
   * @example
   * const { locked } = await log.lockPending({ functions: ["orders/fulfil"], limit: 10, lease: "30s",
   *   holder: { executor: ids.nextId("Exr"), run: ids.nextId("Run") } });
   */
  readonly lockPending: Method<[options: LockPendingOptions], LockPendingOutcome>;
  /**
   * Locks one run and ignores the limits of its function, which apply only to `lockPending`.
   * If the same holder already has the lock, it is extended.
   * @throws HoldfastError `LOCK_HELD`, `LOCK_NOT_DUE`, `LOCK_BLOCKED`, `LOCK_INCOMPATIBLE`, `LOCK_EXPIRY_INVALID`, `VERSION_CONFLICT`, `EXECUTION_NOT_FOUND`, `EXECUTION_FINISHED`,
   *   `EXECUTION_PAUSED`, `EXECUTION_PARKED`, `CORRUPT_ROW`
   */
  readonly lock: Method<[id: string, version: number, options: LockOptions], LockedExecution>;
  /**
   * Extends the caller's own lock, even an expired one if no other worker has taken the run. A
   * run kept in memory while it waits continues to wait. The retry policy stays unless a new
   * one is given.
   * @throws HoldfastError `LOCK_LOST`, and those of `lock`
   */
  readonly extend: Method<[id: string, version: number, options: LockOptions], AppendOutcome>;
  /**
   * Extends the leases of up to 1,000 runs without appending an event: versions stay. It covers
   * locked runs and runs kept in memory while they wait. A lease never becomes shorter. Paused and
   * cancelling runs are renewed too. Stop working on the runs returned in `lost`: this holder no
   * longer has them. May be repeated.
   * @throws HoldfastError `LOCK_EXPIRY_INVALID`, `OPTION_INVALID`, `ID_MALFORMED`, `DURATION_INVALID`
   * @example
   * const { lost } = await log.renew(hot.map(({ id, key }) => ({ id, key })), { holder, lease: "30s" });
   */
  readonly renew: Method<
    [runs: readonly HeldRun[], options: RenewOptions],
    { readonly lost: readonly ExecutionId[] }
  >;
  /**
   * Creates a run and locks it in one step, ignoring the limits of its function. An existing
   * run is not locked, unless the same holder has already locked it. That is a repeated
   * call, which returns the existing lock.
   * @throws HoldfastError those of `create` and `lock`
   */
  readonly createLocked: Method<
    [draft: ExecutionDraft, options: LockOptions],
    CreatedExecution & { readonly locked?: LockedExecution }
  >;
  /**
   * Releases a run without counting a failure. It is due again at once, or after the given
   * time.
   * @throws HoldfastError as `append` does.
   * @example await log.unlock("order-42", 3, { holder: locked.holder, reason: "shutting down" });
   */
  readonly unlock: Method<[id: string, version: number, options: UnlockOptions], AppendOutcome>;

  /**
   * Prevents a run from being locked. The worker that runs a workflow is notified by
   * `execution.interrupted` with the id as its key. It records the calls that it has started, then
   * unlocks the workflow. May be repeated: pausing a paused run changes nothing.
   * @throws HoldfastError `EXECUTION_RUNNING` for an activity that runs, `EXECUTION_NOT_FOUND`, `EXECUTION_FINISHED`, `EXECUTION_CANCELLING`, `EXECUTION_PARKED`
   */
  readonly pause: OfLifecycle;
  /** Resumes a paused execution. May be repeated. @throws HoldfastError `EXECUTION_NOT_FOUND`, `EXECUTION_FINISHED`, `EXECUTION_CANCELLING`, `EXECUTION_PARKED` */
  readonly unpause: OfLifecycle;
  /** Resumes a parked execution, with any version of its code. May be repeated. @throws HoldfastError `EXECUTION_NOT_FOUND`, `EXECUTION_FINISHED`, `EXECUTION_CANCELLING`, `EXECUTION_PAUSED` */
  readonly unpark: OfLifecycle;
  /**
   * Requests the end of a run. One without history, children or a holder ends at
   * once, and the result is `cancelled`. Any other is marked and made due, so that its code cleans
   * up and ends it; the result is `requested`. Its worker is notified by `execution.interrupted`.
   *
   * With `force` the run and all its descendants end without running any code. Descendants
   * end first, in transactions of their own. After an interruption the run stays marked and
   * no worker can lock it; the same call continues. May be repeated.
   * @throws HoldfastError `EXECUTION_NOT_FOUND`, `NAME_INVALID` for a reason that is empty or above 4,096 characters, `OPTION_INVALID`
   * @example await log.cancel("order-42", { reason: "the customer called" });
   */
  readonly cancel: Method<
    [id: string, options?: CancelOptions],
    "cancelled" | "requested" | "alreadyCancelling" | "alreadyFinished"
  >;
  /**
   * Ends an activity or external run at once, even while it runs. May be repeated. `cancel`
   * leaves the end of a running one to its worker. Use this after you have killed that worker's
   * attempt, or when you do not want to wait for it. Later reports of the attempt are refused.
   * @throws HoldfastError `EVENTS_INVALID` for a workflow, `EXECUTION_NOT_FOUND`
   */
  readonly cancelActivity: OfOne<"cancelled" | "alreadyFinished">;
  /**
   * Resolves an external run. Repeating the call with the same result is allowed: `replayed`.
   * @throws HoldfastError `RESOLUTION_CONFLICT`, `ANSWER_INVALID`, `NOT_EXTERNAL`, `EXECUTION_NOT_FOUND`, `OPTION_INVALID` for an invalid result
   * @example await log.resolve("approval-7", { kind: "completed", value: { by: "ann" } });
   */
  readonly resolve: Method<
    [id: string, result: ExecutionResult, wait?: WaitOptions],
    "accepted" | "replayed"
  >;
  /**
   * Answers a question, or any external run, with a value. The schema of the question checks
   * it first. The first answer stays. A later one, or one after the timeout, is `tooLate`, and the
   * reply shows how the question ended.
   * @throws HoldfastError `ANSWER_INVALID`, `NOT_EXTERNAL`, `EXECUTION_NOT_FOUND`, `NOT_SERIALIZABLE`, `VALUE_TOO_LARGE`
   * @example const { kind } = await log.answer("order-42.o:1_1", { approve: true });
   */
  readonly answer: Method<[id: string, value: unknown, wait?: WaitOptions], AnswerReply>;
  /**
   * Sets the progress value that people see for the run; null removes it. With a fence, only
   * the holder that has, or last had, the lock may set it. May be repeated.
   * @throws HoldfastError `EXECUTION_NOT_FOUND`, `LOCK_LOST`, `NOT_SERIALIZABLE`, `VALUE_TOO_LARGE`
   */
  readonly setProgress: Method<[id: string, progress: unknown, options?: ProgressOptions], void>;
  /**
   * Sends a signal, which is kept until the run asks for it. Pass a key to make the call
   * repeatable: `existed` is true if an equal value was already sent under that key.
   * @throws HoldfastError `SIGNAL_CONFLICT`, `EXECUTION_NOT_FOUND`, `EXECUTION_FINISHED`, `NAME_INVALID`, `NOT_SERIALIZABLE`, `VALUE_TOO_LARGE`
   * @example
   * await log.signal("order-42", "approval", { by: "ann" }, { key: "mail-17" });
   */
  readonly signal: Method<
    [id: string, signal: string, value: unknown, options?: SignalOptions],
    { readonly seq: number; readonly existed: boolean }
  >;
  /** Takes the oldest signal of a name, or returns undefined. To retry, pass the same version. @throws HoldfastError as `append` does, and `CORRUPT_ROW` when its value is lost. */
  readonly receive: Method<
    [id: string, signal: string, version: number, options?: ReceiveOptions],
    | {
        readonly seq: number;
        readonly value: unknown;
        readonly nextVersion: number;
      }
    | undefined
  >;

  /**
   * Cancels a delay, such as `Delay_order-42.o:7_1`, that is still unanswered. If it already has an
   * answer, the result says so. May be repeated.
   * @throws HoldfastError `DELAY_NOT_FOUND`, `EXECUTION_NOT_FOUND`, `ID_MALFORMED`
   */
  readonly cancelDelay: OfDelay<"answered" | "alreadyExpired" | "alreadyCancelled" | "notExpired">;
  /** Prevents a delay from expiring until it is unpaused. May be repeated. @throws HoldfastError `DELAY_NOT_FOUND`, `ID_MALFORMED` */
  readonly pauseDelay: OfDelay<void>;
  /** Lets a paused delay expire again. May be repeated. @throws HoldfastError `DELAY_NOT_FOUND`, `ID_MALFORMED` */
  readonly unpauseDelay: OfDelay<void>;
  /** The next instant at which a delay, lock or deadline expires; undefined when there is none. */
  readonly nextTimerAt: Method<[wait?: WaitOptions], number | undefined>;
  /**
   * Resolves when a delay, lock or deadline has expired, and sleeps exactly until then. Pass the
   * same leeway as to `expireTimers`.
   * @throws HoldfastError `ABORTED`, `DEADLINE_EXCEEDED`, `DATABASE_CLOSED`
   */
  waitForTimer(options?: TimerWaitOptions): Promise<void>;
  /**
   * Handles expired delays, locks and deadlines, in the order of expiry within one execution.
   * Timers that another process handled first are not counted. An unreadable or unanswerable one
   * does not stop the others. May be repeated.
   * @throws HoldfastError `OPTION_INVALID`, `DURATION_INVALID`
   */
  expireTimers(options?: ExpireOptions): Promise<ExpireReport>;
  /**
   * Releases the runs held by processes that are proven dead. A process of unknown state
   * keeps its runs until their leases end. With an owner, for use after a `death` hint, it
   * releases only the runs of that process. Without an owner it checks all processes, for use
   * when a worker starts, since no worker may have seen the deaths. May be repeated.
   * @throws HoldfastError `ID_MALFORMED`
   */
  releaseDead(owner?: OwnerId): Promise<ReleaseReport>;

  /**
   * Resolves when a run of these functions is due and their limits, if given, leave room for it.
   * Pass the same functions and code version as to `lockPending`. Another worker may be faster:
   * lock, then wait again. Damaged runs stay due, so pause after a call that locked nothing and
   * reported some.
   * @throws HoldfastError `OPTION_INVALID`, `NAME_INVALID`, `ABORTED`, `DEADLINE_EXCEEDED`, `DATABASE_CLOSED`
   * @example
   * await log.waitForPending(["orders/fulfil"], { signal });
   */
  waitForPending(
    functions: LockPendingOptions["functions"],
    options?: PendingWaitOptions,
  ): Promise<void>;
  /**
   * Returns the responses of a run after a number, in order, once there is at least one. A
   * page has at most 200: call again with the last number.
   * @throws HoldfastError `EXECUTION_NOT_FOUND`, `ABORTED`, `DEADLINE_EXCEEDED`, `DATABASE_CLOSED`
   */
  waitForResponses(
    id: string,
    afterSeq: number,
    wait?: WaitOptions,
  ): Promise<readonly LoggedResponse<unknown>[]>;
  /**
   * Returns the result of a run once it has finished.
   * @throws HoldfastError `EXECUTION_NOT_FOUND`, `ABORTED`, `DEADLINE_EXCEEDED`, `DATABASE_CLOSED`
   * @example
   * const result = await log.waitForResult("order-42", { timeout: "30 seconds" });
   */
  waitForResult(id: string, wait?: WaitOptions): Promise<RecordedResult>;
  /**
   * Removes finished runs with their children, logs and results, in small transactions. Once its
   * removal has begun, a run is hidden from all readers; its id stays taken until the end. An abort
   * or a crash leaves whole runs and at most one partly removed run. The next call finishes that
   * one first, whatever its policy.
   * @throws HoldfastError `OPTION_INVALID`, `DURATION_INVALID`, `NAME_INVALID`, `ABORTED`
   * @example
   * const { trees } = await log.removeFinished({ olderThan: "30 days", keepNewest: 1_000 });
   */
  removeFinished(
    policy: RetentionPolicy,
    options?: SweepOptions<RetentionReport>,
  ): Promise<RetentionReport>;
  /**
   * Erases a finished run in small transactions: all inputs, events, results and logs of the run
   * and its descendants. A tombstone remains (id, function, times, outcome), so that the id is not
   * run again by mistake. `create` refuses the id with `EXECUTION_ERASED`, reads do not find it,
   * and retention removes it when it would have removed the run. Copies made by `fork` and `retry`,
   * and independent runs that it started, are not erased. Databases overwrite the bytes on disk as
   * they reuse pages; on SQLite `VACUUM` does so at once. May be repeated.
   * @throws HoldfastError `EXECUTION_NOT_FOUND`, `EXECUTION_UNFINISHED`, `PROCESS_SPAWNED` while its process was not pruned, `OPTION_INVALID` for a child, `ID_MALFORMED`, `ABORTED`
   * @example
   * await log.erase("order-42");
   */
  erase(
    id: string,
    options?: SweepOptions<EraseProgress>,
  ): Promise<{
    readonly rows: number;
    /** The time of the first erasure, in milliseconds. */
    readonly erasedAt: number;
  }>;
  /**
   * Removes the history before the last continuation of a run, in small transactions: its events,
   * the responses it received and its finished children. Unread signals stay, and keys of signals
   * stay for 30 days. After an abort, the next call continues; rows whose removal has begun are
   * hidden from all readers. May be repeated.
   * @throws HoldfastError `EXECUTION_NOT_FOUND`, `ID_MALFORMED`, `OPTION_INVALID`, `DURATION_INVALID`, `ABORTED`
   * @example
   * const { events } = await log.pruneHistory("order-42");
   */
  pruneHistory(
    id: string,
    options?: PruneOptions,
  ): Promise<{
    readonly events: number;
    readonly responses: number;
    /** Children removed with everything under them. */
    readonly trees: number;
    /**
     * Children kept because a descendant has not finished, or has a process that was not pruned.
     */
    readonly skipped: number;
  }>;
}

/**
 * The execution log: create, append, lock, wait, read. It holds only subscriptions and the position
 * where the last search for work stopped, so a database may have any number of these.
 * @throws HoldfastError `OPTION_INVALID`
 */
export function executions(database: Database, options?: StoreOptions): Executions {
  const context = executionContext(database, options);
  const looks = new ResultLooks(context);
  return {
    create: writes(context, createExecution, givenCreate, shownNew),
    append: writes(context, appendEvents, givenAppend),
    finish: writes(context, appendEvents, givenFinish),
    fork: writes(context, forkExecution, givenFork),
    retry: writes(context, forkExecution, givenRetry),

    lockPending: writes(context, lockPending, givenLockPending),
    lock: writes(context, lockExecution, givenLock),
    extend: writes(context, extendLock, givenLock),
    renew: writes(context, renewLeases, givenRenew),
    createLocked: writes(context, createAndLock, givenCreateLocked),
    unlock: writes(context, appendEvents, givenUnlock),

    pause: writes(context, pauseExecution, ofExecution),
    unpause: writes(context, unpauseExecution, ofExecution),
    unpark: writes(context, unparkExecution, ofExecution),
    cancel: cancels(context),
    cancelActivity: writes(context, cancelActivity, ofExecution),
    resolve: writes(context, resolveExternal, givenResolve, shownResolved),
    answer: writes(context, resolveExternal, givenAnswer, shownReply),
    setProgress: writes(context, setProgress, givenProgress),
    signal: writes(context, sendSignal, givenSendSignal),
    receive: writes(context, receiveSignal, givenReceiveSignal, shownReceived),

    cancelDelay: writes(context, answerDelay, givenCancelDelay),
    pauseDelay: writes(context, pauseDelay, givenPauseDelay),
    unpauseDelay: writes(context, pauseDelay, givenUnpauseDelay),
    nextTimerAt: reads(context, earliestTimer, givenTimerWait),
    waitForTimer: (given) => waitForTimer(context, given),
    expireTimers: (given) => expireTimers(context, given),
    releaseDead: (owner) => releaseDead(context, owner),

    waitForPending: (functions, given) => waitForPending(context, functions, given),
    waitForResponses: (id, afterSeq, wait) => waitForResponses(context, id, afterSeq, wait),
    waitForResult: (id, wait) => waitForResult(context, looks, id, wait),
    ...executionReads(context),
    removeFinished: (policy, given) => removeFinished(context, policy, given),
    erase: (id, given) => eraseExecution(context, id, given),
    pruneHistory: (id, given) => pruneHistory(context, id, given),
  };
}
