import type { LoggedResponse } from "../../model/execution/event.ts";
import type { ExecutionId } from "../../model/ids/execution-id.ts";
import type { GivenEvent } from "../../model/execution/given-event.ts";
import type { OwnerId } from "../../model/ids/prefixed-id.ts";
import type { ExecutionResult } from "../../model/execution/result.ts";
import type { Database, WaitOptions } from "../../sql/database.ts";
import type { StoreOptions } from "../context.ts";
import { reads, writes, type Method } from "../method.ts";
import type { SweepOptions } from "../removal.ts";
import { executionContext } from "./context.ts";
import { cancels } from "./control/force.ts";
import {
  cancelActivity,
  givenProgress,
  givenResolve,
  ofExecution,
  pauseExecution,
  resolveExternal,
  setProgress,
  unparkExecution,
  unpauseExecution,
  type CancelOptions,
  type ProgressOptions,
} from "./control/lifecycle.ts";
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

/** Methods that are told an execution, or a delay, and nothing else. */
type OfOne<Out> = Method<[id: string, wait?: WaitOptions], Out>;
type OfLifecycle = OfOne<{
  readonly nextVersion: number;
  readonly isChanged: boolean;
}>;
type OfDelay<Out> = Method<[delay: string, wait?: WaitOptions], Out>;

/** The execution log of a database: what workflows and activities did, and who runs them. */
export interface Executions extends ExecutionReads {
  /**
   * Creates an execution, or finds the one with the same id, function and
   * input. Repeat it under an id of your own. A child that its parent has
   * asked for is best created by that append: created alone, nobody compares
   * its input with the one asked for but `maintenance.check`.
   * @throws HoldfastError `EXECUTION_EXISTS`, `EXECUTION_ERASED`, `EXECUTION_BEING_REMOVED`, `ID_MALFORMED`, `NAME_INVALID`, `OPTION_INVALID`, `NOT_SERIALIZABLE`, `VALUE_TOO_LARGE`;
   *   of a child's parent `EXECUTION_NOT_FOUND`, `EXECUTION_FINISHED`, `EXECUTION_CANCELLING`
   * @example await log.create({ id: "order-42", function: "orders/fulfil", input: { cents: 500 } });
   */
  readonly create: Method<[draft: ExecutionDraft, wait?: WaitOptions], CreatedExecution>;
  /**
   * Appends events at `version` and after, with the children they ask for:
   * all or nothing, 1,000 of each at most. Of each run that a "scheduled"
   * starts beside, it tells what became of it: a taken id fails nothing.
   * Children that are to be `locked` come locked with the answer, as by
   * `createLocked`.
   * Repeat it with the same version and events: when the log holds them, it
   * answers as the first time.
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
   * Appends the end, and tells the parent; after the events of `events`, if
   * there are any. Repeat it with the same version and an equal result.
   * @throws HoldfastError as `append` does, and `OPTION_INVALID` when it is no result.
   * @example await log.finish("order-42", 3, { kind: "completed", value: "shipped" }, { fence: locked.holder });
   */
  readonly finish: Method<
    [id: string, version: number, result: ExecutionResult, options?: FinishOptions],
    AppendOutcome
  >;
  /**
   * Copies an execution up to a version into a new one, which goes on from
   * there. Repeat it under an id of your own.
   * @throws HoldfastError `EXECUTION_NOT_FOUND`, `FORK_POINT_INVALID`, `FORK_TOO_LARGE`, `EXECUTION_EXISTS`, `EXECUTION_ERASED`, `EXECUTION_BEING_REMOVED`, `EVENTS_INVALID` for the id of a child
   * @example const { id } = await log.fork("order-42", 17, { id: "order-42-again" });
   */
  readonly fork: Method<[source: string, version: number, options?: ForkOptions], CreatedExecution>;
  /** Tries a run again from where it failed, as a new one. Repeat it under an id of your own. @throws HoldfastError `NOT_FAILED`, and those of `fork` */
  readonly retry: Method<[source: string, options?: ForkOptions], CreatedExecution>;

  /**
   * Locks what is due: of each function the longest due first, and functions
   * share the limit, those first with less `load`; also what was parked under code
   * versions other than the one given, and nothing that was parked under it.
   * What cannot be read is left alone and named. Repeated by the same executor and run it gives others, not
   * those again: what an answer that was lost had locked comes back when its
   * lease has ended.
   *
   * One call looks past at most 1,000 rows that cannot be read or that others
   * are locking, and, with a limit per key, past 1,000 that wait for a full
   * one. Behind those it still finds what has no key, and one of each of the
   * next 200 keys, going on with every call where the one before stopped: a
   * free key among n waiting ones is found within n / 200 calls.
   * @throws HoldfastError `LOCK_EXPIRY_INVALID`, `OPTION_INVALID`, `NAME_INVALID`, `ID_MALFORMED`, `DURATION_INVALID`
   * @example
   * const { locked } = await log.lockPending({ functions: ["orders/fulfil"], limit: 10, lease: "30s",
   *   holder: { executor: ids.nextId("Exr"), run: ids.nextId("Run") } });
   */
  readonly lockPending: Method<[options: LockPendingOptions], LockPendingOutcome>;
  /**
   * Locks one execution, whatever the limits of its function: those are
   * `lockPending`'s alone. For the run that holds it already, the lock is
   * extended.
   * @throws HoldfastError `LOCK_HELD`, `LOCK_NOT_DUE`, `LOCK_BLOCKED`, `LOCK_INCOMPATIBLE`, `LOCK_EXPIRY_INVALID`, `VERSION_CONFLICT`, `EXECUTION_NOT_FOUND`, `EXECUTION_FINISHED`,
   *   `EXECUTION_PAUSED`, `EXECUTION_PARKED`, `CORRUPT_ROW`
   */
  readonly lock: Method<[id: string, version: number, options: LockOptions], LockedExecution>;
  /**
   * Makes one's own lock end later, also when it has just ended and nobody
   * has taken the execution; what is kept in memory while it waits goes on
   * waiting. The retry policy stays unless one is given.
   * @throws HoldfastError `LOCK_LOST`, and those of `lock`
   */
  readonly extend: Method<[id: string, version: number, options: LockOptions], AppendOutcome>;
  /**
   * Makes the leases of up to 1,000 runs end later, of what is locked and of
   * what is kept in memory while it waits, without an event: versions stay. A
   * lease never becomes shorter. Paused and cancelling runs are renewed too.
   * The answer names those that this holder has no longer: stop working on
   * them. May be repeated.
   * @throws HoldfastError `LOCK_EXPIRY_INVALID`, `OPTION_INVALID`, `ID_MALFORMED`, `DURATION_INVALID`
   * @example
   * const { lost } = await log.renew(hot.map(({ id, key }) => ({ id, key })), { holder, lease: "30s" });
   */
  readonly renew: Method<
    [runs: readonly HeldRun[], options: RenewOptions],
    { readonly lost: readonly ExecutionId[] }
  >;
  /**
   * Creates an execution and locks it in one step, whatever the limits of its
   * function. One that was there before is not locked, unless the same
   * executor and run hold it: then the call was repeated, and is given the
   * lock as it stands.
   * @throws HoldfastError those of `create` and `lock`
   */
  readonly createLocked: Method<
    [draft: ExecutionDraft, options: LockOptions],
    CreatedExecution & { readonly locked?: LockedExecution }
  >;
  /**
   * Releases an execution without counting a failure; due again at once, or
   * after a time.
   * @throws HoldfastError as `append` does.
   * @example await log.unlock("order-42", 3, { holder: locked.holder, reason: "shutting down" });
   */
  readonly unlock: Method<[id: string, version: number, options: UnlockOptions], AppendOutcome>;

  /**
   * Keeps an execution from being locked. Who runs a workflow is told by
   * `execution.interrupted` with the id as its key, records what it has begun,
   * and unlocks it. May be repeated: what was so already is not changed.
   * @throws HoldfastError `EXECUTION_RUNNING` for an activity that runs, `EXECUTION_NOT_FOUND`, `EXECUTION_FINISHED`, `EXECUTION_CANCELLING`, `EXECUTION_PARKED`
   */
  readonly pause: OfLifecycle;
  /** Lets a paused execution go on. May be repeated. @throws HoldfastError `EXECUTION_NOT_FOUND`, `EXECUTION_FINISHED`, `EXECUTION_CANCELLING`, `EXECUTION_PARKED` */
  readonly unpause: OfLifecycle;
  /** Lets a parked execution go on, with any version of its code. May be repeated. @throws HoldfastError `EXECUTION_NOT_FOUND`, `EXECUTION_FINISHED`, `EXECUTION_CANCELLING`, `EXECUTION_PAUSED` */
  readonly unpark: OfLifecycle;
  /**
   * Asks an execution to end. What has neither history nor children and is not
   * held ends at once and is `cancelled`; of any other the end is `requested`:
   * it is marked and due, so that its code cleans up and ends it, and who runs
   * it is told by `execution.interrupted`.
   *
   * With `force` it ends, with all below it, without running any code: first
   * what is below it, in transactions of their own. When that is interrupted
   * it stays marked: nobody can lock it, and the same call again goes on. May
   * be repeated.
   * @throws HoldfastError `EXECUTION_NOT_FOUND`, `NAME_INVALID` for a reason that is empty or above 4,096 characters, `OPTION_INVALID`
   * @example await log.cancel("order-42", { reason: "the customer called" });
   */
  readonly cancel: Method<
    [id: string, options?: CancelOptions],
    "cancelled" | "requested" | "alreadyCancelling" | "alreadyFinished"
  >;
  /**
   * Ends an activity or external execution at once, also while it runs. May
   * be repeated. `cancel` leaves the end of a running one to its worker; this
   * is for those who have killed that worker's attempt, or do not wait for
   * it: what it still reports is refused.
   * @throws HoldfastError `EVENTS_INVALID` for a workflow, `EXECUTION_NOT_FOUND`
   */
  readonly cancelActivity: OfOne<"cancelled" | "alreadyFinished">;
  /**
   * Resolves an external execution; the same answer again is fine.
   * @throws HoldfastError `RESOLUTION_CONFLICT`, `NOT_EXTERNAL`, `EXECUTION_NOT_FOUND`, `OPTION_INVALID` when it is no result
   * @example await log.resolve("approval-7", { kind: "completed", value: { by: "ann" } });
   */
  readonly resolve: Method<
    [id: string, result: ExecutionResult, wait?: WaitOptions],
    "resolved" | "alreadyResolved"
  >;
  /**
   * Shows a value to people who look at the execution; null removes it. With
   * a fence only while that run has, or last had, the lock. May be repeated.
   * @throws HoldfastError `EXECUTION_NOT_FOUND`, `LOCK_LOST`, `NOT_SERIALIZABLE`, `VALUE_TOO_LARGE`
   */
  readonly setProgress: Method<[id: string, progress: unknown, options?: ProgressOptions], void>;
  /**
   * Sends a signal, which is kept until the execution asks for it. Give a key
   * to be able to repeat the call: it existed when it was sent before under
   * that key with an equal value.
   * @throws HoldfastError `SIGNAL_CONFLICT`, `EXECUTION_NOT_FOUND`, `EXECUTION_FINISHED`, `NAME_INVALID`, `NOT_SERIALIZABLE`, `VALUE_TOO_LARGE`
   * @example
   * await log.signal("order-42", "approval", { by: "ann" }, { key: "mail-17" });
   */
  readonly signal: Method<
    [id: string, signal: string, value: unknown, options?: SignalOptions],
    { readonly seq: number; readonly existed: boolean }
  >;
  /** Takes the oldest signal of a name, or answers undefined. Repeat it with the same version. @throws HoldfastError as `append` does, and `CORRUPT_ROW` when its value is lost. */
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
   * Cancels a delay, such as `Delay_order-42.o:7_1`, that nobody has answered
   * yet, and tells when somebody has. May be repeated.
   * @throws HoldfastError `DELAY_NOT_FOUND`, `EXECUTION_NOT_FOUND`, `ID_MALFORMED`
   */
  readonly cancelDelay: OfDelay<"answered" | "alreadyExpired" | "alreadyCancelled" | "notExpired">;
  /** Keeps a delay from expiring until it is unpaused. May be repeated. @throws HoldfastError `DELAY_NOT_FOUND`, `ID_MALFORMED` */
  readonly pauseDelay: OfDelay<void>;
  /** Lets a paused delay expire again. May be repeated. @throws HoldfastError `DELAY_NOT_FOUND`, `ID_MALFORMED` */
  readonly unpauseDelay: OfDelay<void>;
  /** When the next delay, lock or deadline is over; undefined when there is none. */
  readonly nextTimerAt: Method<[wait?: WaitOptions], number | undefined>;
  /**
   * Resolves when a delay, lock or deadline is over; sleeps exactly until
   * then. Give the leeway that `expireTimers` is given.
   * @throws HoldfastError `ABORTED`, `DEADLINE_EXCEEDED`, `DATABASE_CLOSED`
   */
  waitForTimer(options?: TimerWaitOptions): Promise<void>;
  /**
   * Deals with what is over; of one execution in the order of expiry. What
   * somebody else dealt with first is not counted, and what cannot be read or
   * answered stops nothing else. May be repeated.
   * @throws HoldfastError `OPTION_INVALID`, `DURATION_INVALID`
   */
  expireTimers(options?: ExpireOptions): Promise<ExpireReport>;
  /**
   * Takes from processes that have provably died what they held; those of
   * which nothing is known keep it until their leases end. With an owner, from
   * that one alone: after a `death` hint. Without, from all: when a worker
   * starts, since there may have been nobody to notice. May be repeated.
   * @throws HoldfastError `ID_MALFORMED`
   */
  releaseDead(owner?: OwnerId): Promise<ReleaseReport>;

  /**
   * Resolves when something of these functions is due and their limits, if
   * given, leave room for it: give what `lockPending` is given, with the code
   * version. Another worker
   * may be faster: lock, and wait again. What is damaged stays due, so pause
   * after a round that locked nothing and named some.
   * @throws HoldfastError `OPTION_INVALID`, `NAME_INVALID`, `ABORTED`, `DEADLINE_EXCEEDED`, `DATABASE_CLOSED`
   * @example
   * await log.waitForPending(["orders/fulfil"], { signal });
   */
  waitForPending(
    functions: LockPendingOptions["functions"],
    options?: PendingWaitOptions,
  ): Promise<void>;
  /**
   * The responses of an execution after a number, in order, as soon as there
   * is one: at most 200, so ask again after the last.
   * @throws HoldfastError `EXECUTION_NOT_FOUND`, `ABORTED`, `DEADLINE_EXCEEDED`, `DATABASE_CLOSED`
   */
  waitForResponses(
    id: string,
    afterSeq: number,
    wait?: WaitOptions,
  ): Promise<readonly LoggedResponse<unknown>[]>;
  /**
   * How an execution ended, once it has.
   * @throws HoldfastError `EXECUTION_NOT_FOUND`, `ABORTED`, `DEADLINE_EXCEEDED`, `DATABASE_CLOSED`
   * @example
   * const result = await log.waitForResult("order-42", { timeout: "30 seconds" });
   */
  waitForResult(id: string, wait?: WaitOptions): Promise<ExecutionResult>;
  /**
   * Removes finished runs with their children, logs and results, in small
   * transactions. A run whose removal has begun is gone for everybody, and its
   * id taken until the end. Stopping it, or a crash, leaves whole runs and at
   * most one that the next call, whatever its policy, goes on with first.
   * @throws HoldfastError `OPTION_INVALID`, `DURATION_INVALID`, `NAME_INVALID`, `ABORTED`
   * @example
   * const { trees } = await log.removeFinished({ olderThan: "30 days", keepNewest: 1_000 });
   */
  removeFinished(
    policy: RetentionPolicy,
    options?: SweepOptions<RetentionReport>,
  ): Promise<RetentionReport>;
  /**
   * Erases a finished run: everything that it and those below it were given,
   * recorded, returned or logged, in small transactions. What is left is a
   * tombstone (id, function, times, how it ended), so that the id is not run
   * again by mistake: `create` refuses it with `EXECUTION_ERASED`, reads find
   * nothing, and retention removes it as it would have removed the run. Copies
   * made by `fork` and `retry`, and runs that it started beside itself, are
   * runs of their own. Bytes on disk are overwritten as pages are used again,
   * on SQLite all at once by `VACUUM`. May be repeated.
   * @throws HoldfastError `EXECUTION_NOT_FOUND`, `EXECUTION_UNFINISHED`, `PROCESS_SPAWNED` while its process was not pruned, `OPTION_INVALID` for a child, `ID_MALFORMED`, `ABORTED`
   * @example
   * await log.erase("order-42");
   */
  erase(
    id: string,
    options?: SweepOptions<EraseProgress>,
  ): Promise<{
    readonly rows: number;
    /** When it was erased first, in milliseconds. */
    readonly erasedAt: number;
  }>;
  /**
   * Removes what a run left behind when it was last started anew, in small
   * transactions: its events, the responses it was given and its children that
   * have ended. Unread signals stay, and so do keys of signals for 30 days.
   * Stopped, it goes on with the next call; what it has begun is gone for
   * everybody. May be repeated.
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
    /** Children left because something under them has not finished, or has a process that was not pruned. */
    readonly skipped: number;
  }>;
}

/**
 * The execution log: create, append, lock, wait, read. Holds nothing but
 * subscriptions and the place where a search for work stopped, so there may be
 * any number of these over one database.
 *
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
    resolve: writes(context, resolveExternal, givenResolve),
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
