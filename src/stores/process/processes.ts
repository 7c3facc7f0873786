import { durationMs, type Duration } from "../../model/time/durations.ts";
import type { LeaseHolder } from "../../model/lease.ts";
import { parseProcessId } from "../../model/ids/process-id.ts";
import type { ProcessOutput } from "../../model/process/output.ts";
import type { ProcessSummary, ProcessWait } from "../../model/process/process.ts";
import { draftOf } from "../../model/shape.ts";
import type { Database, WaitOptions } from "../../sql/database.ts";
import type { StoreOptions } from "../context.ts";
import type { Damaged } from "../damage.ts";
import {
  givenRhythm,
  type LeaseClaimant,
  type LeaseKeepOptions,
  type LeaseOptions,
  type LeaseKeeper,
  type LeaseOutcome,
} from "../lease/context.ts";
import { lists, type Page, type PageOptions } from "../list.ts";
import { nothingToLock, onlyWait, readsLocking, writes, type Method } from "../method.ts";
import { sweepOptions, type SweepOptions } from "../removal.ts";
import {
  abandons,
  appendProcessEvent,
  givenAppend,
  givenCancel,
  givenComplete,
  givenSignalCall,
  shownAppended,
  type ProcessEventDraft,
  type ProcessFenceOptions,
} from "./append.ts";
import {
  processContext,
  type ProcessContext,
  type AppendedProcessEvent,
  type ProcessCancelOptions,
  type ProcessEventView,
  type ProcessSignalOptions,
  type ProcessView,
} from "./context.ts";
import type { ProcessGrant, ProcessHandle } from "./grant-row.ts";
import {
  givenGrant,
  givenOfScope,
  givenTransfer,
  grantHandle,
  grantList,
  readGrant,
  revokeHandle,
  transferHandles,
} from "./grants.ts";
import {
  claimProcess,
  givenHeld,
  givenProcessLease,
  givenRenew,
  processLeaseOperations,
  startProcess,
  type ProcessLease,
} from "./lease.ts";
import {
  changeList,
  processList,
  worklist,
  type ListProcessesOptions,
  type ProcessChange,
  type ProcessWorklistOptions,
  type RecoverableProcess,
} from "./list.ts";
import {
  clearWait,
  givenClearWait,
  givenExternalRef,
  givenSetWait,
  setExternalRef,
  setWait,
  type ProcessExternalRef,
} from "./notes.ts";
import type { ProcessDraft, ProcessHandleDraft, SessionScopeName } from "./parts.ts";
import { pruneInSlices } from "./prune.ts";
import {
  countEvents,
  eventList,
  givenCount,
  givenProcess,
  givenRecent,
  readEnd,
  readProcess,
  recentEvents,
  shownEnd,
  shownProcess,
  type ListProcessEventsOptions,
} from "./read.ts";
import {
  givenRegister,
  givenSpawn,
  registerProcess,
  shownRegistered,
  spawnProcess,
  type SpawnDraft,
  type SpawnedProcess,
} from "./register.ts";
import { handleList, type ListHandlesOptions } from "./handle-row.ts";
import { lockReadProcess } from "./process-row.ts";
import type { RegisteredProcess } from "./registration-row.ts";
import { waitForEnd, waitForEvent, waitForSignal, type AwaitedProcessEvent } from "./wait.ts";

type Pruned = {
  /** Processes that became tombstones. */
  readonly pruned: number;
  /** Removed events, including those of processes whose earlier pruning was interrupted. */
  readonly rows: number;
  /** Ids of unreadable rows, which pruning skips. */
  readonly damaged: readonly Damaged[];
};

/**
 * The background work of a database: processes that run beside the turns of sessions, their events,
 * and the sessions that they wake.
 */
export interface Processes {
  /**
   * Registers a process. When one with the same id and content is registered already, returns it
   * with `existed` true.
   * @throws HoldfastError `PROCESS_CONFLICT` naming the part that differs, `PROCESS_INVALID`, `OPTION_INVALID`,
   *   `ID_MALFORMED`, `NAME_INVALID`, `NOT_SERIALIZABLE`, `SESSION_NOT_FOUND` and `SESSION_DELETED` for its wake target,
   *   `BLOB_NOT_FOUND` for its environment
   * @example
   * await processes.register({ id: "build-7", kind: "tool", wakeTarget: "chat-7", input: { branch: "main" } });
   */
  readonly register: Method<[draft: ProcessDraft, wait?: WaitOptions], RegisteredProcess<unknown>>;
  /**
   * Creates an execution, registers its process and grants handles of it, all or nothing. When the
   * execution ends, the same transaction ends the process and wakes its session. A cancel request
   * reaches the execution.
   * @throws HoldfastError those of `register` and of `create` of `executions`: `EXECUTION_EXISTS` …
   * @example
   * await processes.spawn({
   *   id: "build-7", kind: "workflow", wakeTarget: "chat-7",
   *   execution: { function: "ci/build", input: { branch: "main" } },
   *   grants: [{ scope: "chat-7" }],
   * });
   */
  readonly spawn: Method<[draft: SpawnDraft, wait?: WaitOptions], SpawnedProcess<unknown>>;
  /**
   * Appends an event of a declared type, and applies the type's effects: it ends the process or
   * wakes its session.
   * @throws HoldfastError `PROCESS_NOT_FOUND`, `PROCESS_PRUNED`, `PROCESS_TERMINAL`, `EVENT_TYPE_UNDECLARED`,
   *   `EVENT_TYPE_RESERVED`, `EVENT_PAYLOAD_INVALID`, `EVENT_SELECTOR_UNMATCHED`, `REPLAY_KEY_REQUIRED`,
   *   `REPLAY_KEY_CONFLICT`, `REPLAY_KEY_RESERVED`, `PROCESS_LEASED`, `PROCESS_LEASE_LOST`, and `PROCESS_SPAWNED`
   *   for an event that would end it while it runs as an execution
   * @example
   * await processes.append("build-7", { type: "progress", payload: { percent: 50 } });
   * @example
   * const append = processes.append.prepare("build-7", { type: "progress", payload: { percent: 50 } });
   * await database.write("report", function* () {
   *   yield* append();
   *   yield* run(sql`UPDATE build SET percent = 50 WHERE id = 7`);
   * });
   */
  readonly append: Method<
    [process: string, event: ProcessEventDraft, wait?: WaitOptions],
    AppendedProcessEvent
  >;
  /**
   * Ends a process. A repeated call with the same output succeeds. A process that runs as an
   * execution ends with it: finish or cancel the execution.
   * @throws HoldfastError `PROCESS_NOT_FOUND`, `PROCESS_PRUNED`, `PROCESS_TERMINAL`, `PROCESS_SPAWNED` while it runs
   *   as an execution, `REPLAY_KEY_CONFLICT`, `PROCESS_LEASED`, `PROCESS_LEASE_LOST`
   * @example
   * await processes.complete("build-7", { kind: "completed", value: { url } }, { fence: lease });
   */
  readonly complete: Method<
    [process: string, output: ProcessOutput, options?: ProcessFenceOptions],
    AppendedProcessEvent
  >;
  /**
   * Asks a process to stop. The process keeps running until it does. An execution behind it is
   * cancelled. Each reason is recorded once.
   * @throws HoldfastError `PROCESS_NOT_FOUND`, `PROCESS_PRUNED`, `NAME_INVALID`
   * @example
   * await processes.cancel("build-7", { reason: "no longer needed" });
   */
  readonly cancel: Method<[process: string, options?: ProcessCancelOptions], AppendedProcessEvent>;
  /**
   * Sends a signal: an event of the declared type `signal.<name>`. The same key is the same signal.
   * @throws HoldfastError `PROCESS_NOT_FOUND`, `PROCESS_PRUNED`, `EVENT_TYPE_UNDECLARED`, `EVENT_PAYLOAD_INVALID`, `REPLAY_KEY_CONFLICT`, `NAME_INVALID`
   * @example
   * await processes.signal("build-7", "approved", { by: "ada" }, { key: "approval-1" });
   */
  readonly signal: Method<
    [process: string, name: string, payload: unknown, options: ProcessSignalOptions],
    AppendedProcessEvent
  >;
  /**
   * Ends a process that no worker can finish. May be repeated. A lease whose holder has provably
   * died does not block it, but only a call outside a transaction can find that out.
   * @throws HoldfastError `PROCESS_NOT_FOUND`, `PROCESS_PRUNED`, `PROCESS_TERMINAL`, `PROCESS_SPAWNED` while it runs
   *   as an execution, `PROCESS_LEASED` while a worker holds it, `NAME_INVALID`
   */
  readonly abandon: Method<
    [process: string, reason: string, wait?: WaitOptions],
    AppendedProcessEvent
  >;
  /**
   * Records that a process waits for the n-th signal of a name. The same wait again changes
   * nothing; another one replaces it.
   * @throws HoldfastError `PROCESS_NOT_FOUND`, `PROCESS_PRUNED`, `PROCESS_TERMINAL`, `EVENT_TYPE_UNDECLARED`,
   *   `PROCESS_LEASED` while another worker holds it, `PROCESS_LEASE_LOST`
   */
  readonly setWait: Method<
    [
      process: string,
      awaited: { readonly signal: string; readonly ordinal: number },
      options?: ProcessFenceOptions,
    ],
    ProcessWait
  >;
  /**
   * Clears the wait of a process; false when it was not waiting.
   * @throws HoldfastError `PROCESS_NOT_FOUND`, `PROCESS_PRUNED`, `PROCESS_LEASED`, `PROCESS_LEASE_LOST`
   */
  readonly clearWait: Method<[process: string, options?: ProcessFenceOptions], boolean>;
  /**
   * Records the external work that a process stands for; false when it was recorded already.
   * @throws HoldfastError `PROCESS_NOT_FOUND`, `PROCESS_PRUNED`, `EXTERNAL_REF_CONFLICT`,
   *   `PROCESS_LEASED` while another worker holds it, `PROCESS_LEASE_LOST`
   */
  readonly setExternalRef: Method<
    [process: string, ref: ProcessExternalRef, options?: ProcessFenceOptions],
    boolean
  >;
  /**
   * Claims the lease of a running process, the right to work on it, or returns the current holder.
   * A lease has one holder at a time, and its fence only grows. A lease whose holder has provably
   * died is taken over at once.
   * @throws HoldfastError `PROCESS_NOT_FOUND`, `PROCESS_PRUNED`, `PROCESS_TERMINAL`, `PROCESS_SPAWNED` while it runs
   *   as an execution
   * @example
   * const outcome = await processes.claim("build-7", { owner: "worker", incarnation: bootId }, { lease: "1 min" });
   */
  claim(
    process: string,
    claimant: LeaseClaimant,
    options?: LeaseOptions,
  ): Promise<LeaseOutcome<ProcessLease>>;
  /**
   * Records that the holder starts to work, once per lease. Returns the number of starts so far.
   * @throws HoldfastError `PROCESS_NOT_FOUND`, `PROCESS_PRUNED`, `PROCESS_LEASE_LOST`, `PROCESS_TERMINAL`, `PROCESS_SPAWNED`, `PROCESS_ATTEMPTS_USED`
   */
  readonly start: Method<[lease: ProcessLease, wait?: WaitOptions], number>;
  /**
   * Extends a lease, and never shortens it.
   * @throws HoldfastError `PROCESS_LEASE_LOST`, `PROCESS_NOT_FOUND`
   */
  readonly renew: Method<[lease: ProcessLease, options?: LeaseOptions], ProcessLease>;
  /**
   * Releases a lease. False when it was no longer held or the process is unknown: the lease is free
   * then, as the caller wanted.
   */
  readonly release: Method<[lease: ProcessLease, wait?: WaitOptions], boolean>;
  /**
   * Returns the holder of a process's lease. An expired lease is recorded as ended, so it stays
   * expired when the clock is set back.
   * @throws HoldfastError `PROCESS_NOT_FOUND`
   */
  holder(process: string, wait?: WaitOptions): Promise<LeaseHolder | undefined>;
  /**
   * Renews a lease in the background until it is stopped or lost.
   * @throws HoldfastError `OPTION_INVALID` when `every` is more than a third of `lease`
   */
  keep(lease: ProcessLease, options?: LeaseKeepOptions): LeaseKeeper<ProcessLease>;
  /**
   * Grants a session, or one frame of it, a handle to address a process. A repeated grant replaces
   * the handle's label.
   * @throws HoldfastError `PROCESS_NOT_FOUND`, `PROCESS_PRUNED`, `SESSION_NOT_FOUND`, `SESSION_DELETED`
   * @example
   * await processes.grant("build-7", { session: "chat-7", frame: "planner" }, { label: "the build" });
   */
  readonly grant: Method<
    [process: string, scope: SessionScopeName, descriptor?: ProcessHandleDraft, wait?: WaitOptions],
    void
  >;
  /**
   * Revokes a handle; false when there was none.
   * @throws HoldfastError `PROCESS_NOT_FOUND`, `SESSION_NOT_FOUND`, `SESSION_DELETED`
   */
  readonly revoke: Method<[process: string, scope: SessionScopeName, wait?: WaitOptions], boolean>;
  /**
   * Moves up to 1,000 handles from one session to another, all or nothing. May be repeated.
   * @throws HoldfastError `HANDLE_NOT_GRANTED`, `PROCESS_NOT_FOUND`, `SESSION_NOT_FOUND`, `SESSION_DELETED`
   */
  readonly transfer: Method<
    [
      from: SessionScopeName,
      to: SessionScopeName,
      processes: readonly string[],
      wait?: WaitOptions,
    ],
    void
  >;
  /**
   * Tests whether a session, or one frame of it, has a handle.
   * @throws HoldfastError `PROCESS_NOT_FOUND`, `SESSION_NOT_FOUND`, `SESSION_DELETED`
   */
  readonly hasHandle: Method<
    [process: string, scope: SessionScopeName, wait?: WaitOptions],
    boolean
  >;
  /**
   * The handles of a session or of one frame of it, in the order in which their processes were
   * registered. `get` shows the input of one process.
   * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`, `CURSOR_INVALID`
   */
  readonly handles: Method<
    [scope: SessionScopeName, options?: ListHandlesOptions],
    Page<ProcessHandle>
  >;
  /**
   * The holders of handles of a process, by session and frame.
   * @throws HoldfastError `PROCESS_NOT_FOUND`, `CURSOR_INVALID`
   */
  readonly grants: Method<[process: string, options?: PageOptions], Page<ProcessGrant>>;
  /** Returns a process; undefined when it is unknown. @throws HoldfastError `CORRUPT_ROW` */
  readonly get: Method<[process: string, wait?: WaitOptions], ProcessView | undefined>;
  /**
   * Returns the output that a process ended with; undefined while it runs.
   * @throws HoldfastError `PROCESS_NOT_FOUND`, `PROCESS_PRUNED`, `CORRUPT_ROW`
   */
  readonly output: Method<[process: string, wait?: WaitOptions], ProcessOutput | undefined>;
  /**
   * Events in order. Large events make short pages.
   * @throws HoldfastError `PROCESS_NOT_FOUND`, `PROCESS_PRUNED`, `CURSOR_INVALID`
   * @example
   * const { items, next } = await processes.events("build-7", { from: 4, type: "progress" });
   */
  readonly events: Method<
    [process: string, options?: ListProcessEventsOptions],
    Page<ProcessEventView>
  >;
  /**
   * The latest events, in order; fewer than requested when they are large.
   * @throws HoldfastError `PROCESS_NOT_FOUND`, `PROCESS_PRUNED`
   */
  readonly recent: Method<
    [process: string, limit: number, wait?: WaitOptions],
    {
      readonly items: readonly ProcessEventView[];
      readonly damaged: readonly Damaged[];
    }
  >;
  /**
   * Counts the events of a type up to and including a number.
   * @throws HoldfastError `PROCESS_NOT_FOUND`, `PROCESS_PRUNED`
   */
  readonly count: Method<
    [process: string, type: string, through?: number, wait?: WaitOptions],
    number
  >;
  /**
   * Processes in the order of their ids, by default the running ones. `get` shows the input of one.
   * @throws HoldfastError `OPTION_INVALID`, `CURSOR_INVALID`
   * @example
   * const { items, next } = await processes.list({ status: "any", kind: "tool" });
   */
  readonly list: Method<[options?: ListProcessesOptions], Page<ProcessSummary>>;
  /**
   * All changes of processes after a cursor, in one order. Each event appears exactly once; a
   * pruned process appears only with its last event. `next` is always set: pass it to continue, now
   * or later.
   * @throws HoldfastError `CURSOR_INVALID`
   */
  readonly changes: Method<
    [options?: PageOptions],
    Page<ProcessChange> & { readonly next: string }
  >;
  /**
   * Running processes that no worker holds, by id, with the recovery that each needs. `limit`
   * counts the running processes that are examined, so a page may be empty and still have a next
   * one. An expired lease is recorded as ended.
   * @throws HoldfastError `CURSOR_INVALID`
   */
  worklist(options?: ProcessWorklistOptions): Promise<Page<RecoverableProcess>>;
  /**
   * Waits for the first event of a type after a number. Resolves at once if it exists.
   * @throws HoldfastError `PROCESS_NOT_FOUND`, `PROCESS_PRUNED`, `ABORTED`, `DEADLINE_EXCEEDED`, `CORRUPT_ROW`
   * @example
   * const event = await processes.waitForEvent("build-7", { type: "progress", after: 3 }, { timeout: "1m" });
   */
  waitForEvent(
    process: string,
    awaited?: AwaitedProcessEvent,
    wait?: WaitOptions,
  ): Promise<ProcessEventView>;
  /**
   * Waits for the n-th signal of a name, counted from 1.
   * @throws HoldfastError as `waitForEvent`, and `NAME_INVALID`
   */
  waitForSignal(
    process: string,
    signal: string,
    ordinal: number,
    wait?: WaitOptions,
  ): Promise<ProcessEventView>;
  /** Waits for the output that a process ends with. @throws HoldfastError as `waitForEvent` */
  waitForEnd(process: string, wait?: WaitOptions): Promise<ProcessOutput>;
  /**
   * Turns processes that ended long ago into tombstones, in small transactions. Their names,
   * status, times and hashes stay; their payloads are removed. A stop or a crash leaves at most one
   * unfinished, which the next call finishes first. Retention may then remove their executions too.
   * @throws HoldfastError `ABORTED`, `OPTION_INVALID`, `DURATION_INVALID`
   * @example
   * const { pruned } = await processes.prune({ olderThan: "30 days" });
   */
  prune(
    policy: {
      /** The minimum age of a process's end. */
      readonly olderThan: Duration;
    },
    options?: SweepOptions<Pruned>,
  ): Promise<Pruned>;
}

const reads = readsLocking(lockReadProcess);

/** The process registry. Holds nothing, so one database can have any number of these. */
export function processes(database: Database, options?: StoreOptions): Processes {
  const context = processContext(database, options);
  return {
    register: writes(context, registerProcess, givenRegister, shownRegistered),
    spawn: writes(context, spawnProcess, givenSpawn, shownRegistered),
    append: writes(context, appendProcessEvent, givenAppend, shownAppended),
    complete: writes(context, appendProcessEvent, givenComplete, shownAppended),
    cancel: writes(context, appendProcessEvent, givenCancel, shownAppended),
    signal: writes(context, appendProcessEvent, givenSignalCall, shownAppended),
    abandon: abandons(context),
    setWait: writes(context, setWait, givenSetWait),
    clearWait: writes(context, clearWait, givenClearWait),
    setExternalRef: writes(context, setExternalRef, givenExternalRef),
    ...leasesOf(context),
    grant: writes(context, grantHandle, givenGrant),
    revoke: writes(context, revokeHandle, givenOfScope),
    transfer: writes(context, transferHandles, givenTransfer),
    hasHandle: reads(context, readGrant, givenOfScope),
    handles: lists(context, handleList),
    grants: lists(context, grantList, lockReadProcess),
    get: reads(context, readProcess, givenProcess, shownProcess),
    output: reads(context, readEnd, givenProcess, shownEnd),
    events: lists(context, eventList, lockReadProcess),
    recent: reads(context, recentEvents, givenRecent),
    count: reads(context, countEvents, givenCount),
    list: lists(context, processList),
    // Entries of the feed never change, and new ones come after its cursor.
    changes: lists(context, changeList, nothingToLock) as Processes["changes"],
    worklist: async (given) => worklist(context, given),
    waitForEvent: async (process, awaited, wait) => waitForEvent(context, process, awaited, wait),
    waitForSignal: async (process, signal, ordinal, wait) =>
      waitForSignal(context, process, signal, ordinal, wait),
    waitForEnd: async (process, wait) => waitForEnd(context, process, wait),
    async prune(policy, given) {
      const sweep = sweepOptions(given);
      const { olderThan } = draftOf("policy", policy, ["olderThan"]);
      const olderThanMs = durationMs(olderThan, "olderThan");
      return pruneInSlices(context, context.clock.now() - olderThanMs, sweep);
    },
  };
}

function leasesOf(
  context: ProcessContext,
): Pick<Processes, "claim" | "start" | "renew" | "release" | "holder" | "keep"> {
  const leases = processLeaseOperations;
  return {
    claim: async (process, claimant, options) => claimProcess(context, process, claimant, options),
    start: writes(context, startProcess, givenHeld),
    renew: writes(context, leases.renew, givenRenew),
    release: writes(context, leases.release, givenHeld),
    holder: async (process, wait) =>
      leases.holder(context, parseProcessId(process), onlyWait(wait)),
    keep: (lease, options) =>
      leases.keep(context, { lease, of: givenProcessLease(lease).of }, givenRhythm(options)),
  };
}
