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
import { onlyWait, reads, writes, type Method } from "../method.ts";
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
  handleList,
  readGrant,
  revokeHandle,
  transferHandles,
  type ListHandlesOptions,
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
import type { RegisteredProcess } from "./registration-row.ts";
import { waitForEnd, waitForEvent, waitForSignal, type AwaitedProcessEvent } from "./wait.ts";

type Pruned = {
  /** Processes that became tombstones. */
  readonly pruned: number;
  /** Events removed, also of those whose pruning was interrupted before. */
  readonly rows: number;
  /** Rows that cannot be read, by id: pruning goes on past them. */
  readonly damaged: readonly Damaged[];
};

/** The background work of a database: what runs beside the turns of sessions, what happened to it, and who is woken by it. */
export interface Processes {
  /**
   * Registers a process, or finds the one registered before under the same id
   * with the same content: `existed` is then true.
   * @throws HoldfastError `PROCESS_CONFLICT` naming the part that differs, `PROCESS_INVALID`, `OPTION_INVALID`,
   *   `ID_MALFORMED`, `NAME_INVALID`, `NOT_SERIALIZABLE`, `SESSION_NOT_FOUND` and `SESSION_DELETED` for its wake target
   * @example
   * await processes.register({ id: "build-7", kind: "tool", wakeTarget: "chat-7", input: { branch: "main" } });
   */
  readonly register: Method<[draft: ProcessDraft, wait?: WaitOptions], RegisteredProcess<unknown>>;
  /**
   * Creates an execution, registers its process and grants handles of it: all
   * or nothing. When the execution ends, so does the process, and its session
   * is woken, in the same transaction; a cancel request reaches the execution.
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
   * Appends an event of a declared type, and does what the type says: the
   * process ends, its session is woken.
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
   * Ends a process. The same output again is fine. One that runs as an
   * execution ends with it: finish or cancel that.
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
   * Asks a process to stop. It goes on until it does; if it runs as an
   * execution, that is cancelled. Each reason is recorded once.
   * @throws HoldfastError `PROCESS_NOT_FOUND`, `PROCESS_PRUNED`, `NAME_INVALID`
   * @example
   * await processes.cancel("build-7", { reason: "no longer needed" });
   */
  readonly cancel: Method<[process: string, options?: ProcessCancelOptions], AppendedProcessEvent>;
  /**
   * Sends a signal, an event of the declared type `signal.<name>`. The same
   * key again is the same signal.
   * @throws HoldfastError `PROCESS_NOT_FOUND`, `PROCESS_PRUNED`, `EVENT_TYPE_UNDECLARED`, `EVENT_PAYLOAD_INVALID`, `REPLAY_KEY_CONFLICT`, `NAME_INVALID`
   * @example
   * await processes.signal("build-7", "approved", { by: "ada" }, { key: "approval-1" });
   */
  readonly signal: Method<
    [process: string, name: string, payload: unknown, options: ProcessSignalOptions],
    AppendedProcessEvent
  >;
  /**
   * Ends a process that nobody can finish. May be repeated. A lease whose
   * holder has provably died is not in the way, but only a call outside a
   * transaction can find that out.
   * @throws HoldfastError `PROCESS_NOT_FOUND`, `PROCESS_PRUNED`, `PROCESS_TERMINAL`, `PROCESS_SPAWNED` while it runs
   *   as an execution, `PROCESS_LEASED` while a worker holds it, `NAME_INVALID`
   */
  readonly abandon: Method<
    [process: string, reason: string, wait?: WaitOptions],
    AppendedProcessEvent
  >;
  /**
   * Records that a process waits for the n-th signal of a name. The same again
   * changes nothing; another one takes its place.
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
   * Records that a process goes on; false when it did not wait.
   * @throws HoldfastError `PROCESS_NOT_FOUND`, `PROCESS_PRUNED`, `PROCESS_LEASED`, `PROCESS_LEASE_LOST`
   */
  readonly clearWait: Method<[process: string, options?: ProcessFenceOptions], boolean>;
  /**
   * Records which outside work a process stands for; false when that was known.
   * @throws HoldfastError `PROCESS_NOT_FOUND`, `PROCESS_PRUNED`, `EXTERNAL_REF_CONFLICT`,
   *   `PROCESS_LEASED` while another worker holds it, `PROCESS_LEASE_LOST`
   */
  readonly setExternalRef: Method<
    [process: string, ref: ProcessExternalRef, options?: ProcessFenceOptions],
    boolean
  >;
  /**
   * Takes the lease of a running process, the right to work on it, or says who
   * has it. There is one holder at a time, and a fence that only grows. From a
   * holder that has provably died it is taken at once.
   * @throws HoldfastError `PROCESS_NOT_FOUND`, `PROCESS_PRUNED`, `PROCESS_TERMINAL`
   * @example
   * const outcome = await processes.claim("build-7", { owner: "worker", incarnation: bootId }, { lease: "1 min" });
   */
  claim(
    process: string,
    claimant: LeaseClaimant,
    options?: LeaseOptions,
  ): Promise<LeaseOutcome<ProcessLease>>;
  /**
   * Records that the holder begins to work, once for each lease; answers how
   * often it was begun.
   * @throws HoldfastError `PROCESS_NOT_FOUND`, `PROCESS_PRUNED`, `PROCESS_LEASE_LOST`, `PROCESS_TERMINAL`, `PROCESS_ATTEMPTS_USED`
   */
  readonly start: Method<[lease: ProcessLease, wait?: WaitOptions], number>;
  /** Extends a lease; it never gets shorter. @throws HoldfastError `PROCESS_LEASE_LOST`, `PROCESS_NOT_FOUND` */
  readonly renew: Method<[lease: ProcessLease, options?: LeaseOptions], ProcessLease>;
  /**
   * Releases a lease; false when it was no longer held, also when there is no
   * such process: then nobody holds it, which is what the caller wanted.
   */
  readonly release: Method<[lease: ProcessLease, wait?: WaitOptions], boolean>;
  /**
   * Who works on a process. A lease that is found to have run out is recorded
   * as over, so that it stays so when the clock is set back.
   * @throws HoldfastError `PROCESS_NOT_FOUND`
   */
  holder(process: string, wait?: WaitOptions): Promise<LeaseHolder | undefined>;
  /**
   * Renews a lease in the background until it is stopped or lost.
   * @throws HoldfastError `OPTION_INVALID` when `every` is more than a third of `lease`
   */
  keep(lease: ProcessLease, options?: LeaseKeepOptions): LeaseKeeper<ProcessLease>;
  /**
   * Lets a session, or one frame of it, address a process. Granting again
   * replaces what the handle is called.
   * @throws HoldfastError `PROCESS_NOT_FOUND`, `PROCESS_PRUNED`, `SESSION_NOT_FOUND`, `SESSION_DELETED`
   * @example
   * await processes.grant("build-7", { session: "chat-7", frame: "planner" }, { label: "the build" });
   */
  readonly grant: Method<
    [process: string, scope: SessionScopeName, descriptor?: ProcessHandleDraft, wait?: WaitOptions],
    void
  >;
  /** Takes a handle back; false when there was none. @throws HoldfastError `PROCESS_NOT_FOUND`, `SESSION_NOT_FOUND`, `SESSION_DELETED` */
  readonly revoke: Method<[process: string, scope: SessionScopeName, wait?: WaitOptions], boolean>;
  /**
   * Moves up to 1,000 handles from one session to another: all of them, or
   * none. May be repeated.
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
  /** Whether a session, or one frame of it, has a handle. @throws HoldfastError `PROCESS_NOT_FOUND`, `SESSION_NOT_FOUND`, `SESSION_DELETED` */
  readonly hasHandle: Method<
    [process: string, scope: SessionScopeName, wait?: WaitOptions],
    boolean
  >;
  /**
   * The handles of a session, or of one frame of it, in the order in which
   * their processes were registered; `get` shows what was given to one.
   * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`, `CURSOR_INVALID`
   */
  readonly handles: Method<
    [scope: SessionScopeName, options?: ListHandlesOptions],
    Page<ProcessHandle>
  >;
  /** Who has handles of a process, by session and frame. @throws HoldfastError `PROCESS_NOT_FOUND`, `CURSOR_INVALID` */
  readonly grants: Method<[process: string, options?: PageOptions], Page<ProcessGrant>>;
  /** A process; undefined when there is none. @throws HoldfastError `CORRUPT_ROW` */
  readonly get: Method<[process: string, wait?: WaitOptions], ProcessView | undefined>;
  /** What a process ended with; undefined while it runs. @throws HoldfastError `PROCESS_NOT_FOUND`, `PROCESS_PRUNED`, `CORRUPT_ROW` */
  readonly output: Method<[process: string, wait?: WaitOptions], ProcessOutput | undefined>;
  /**
   * Events in order; large ones make short pages.
   * @throws HoldfastError `PROCESS_NOT_FOUND`, `PROCESS_PRUNED`, `CURSOR_INVALID`
   * @example
   * const { items, next } = await processes.events("build-7", { from: 4, type: "progress" });
   */
  readonly events: Method<
    [process: string, options?: ListProcessEventsOptions],
    Page<ProcessEventView>
  >;
  /** The latest events, in order; fewer than asked for when they are large. @throws HoldfastError `PROCESS_NOT_FOUND`, `PROCESS_PRUNED` */
  readonly recent: Method<
    [process: string, limit: number, wait?: WaitOptions],
    {
      readonly items: readonly ProcessEventView[];
      readonly damaged: readonly Damaged[];
    }
  >;
  /** How many events of a type there are up to a number, that one included. @throws HoldfastError `PROCESS_NOT_FOUND`, `PROCESS_PRUNED` */
  readonly count: Method<
    [process: string, type: string, through?: number, wait?: WaitOptions],
    number
  >;
  /**
   * Processes in the order of their ids, by default those that run; `get`
   * shows what was given to one.
   * @throws HoldfastError `OPTION_INVALID`, `CURSOR_INVALID`
   * @example
   * const { items, next } = await processes.list({ status: "any", kind: "tool" });
   */
  readonly list: Method<[options?: ListProcessesOptions], Page<ProcessSummary>>;
  /**
   * All that happened to processes behind a cursor, in one order. Each event
   * is told once, none is missed; a process that was pruned is told by its
   * last event alone. `next` is always there: go on with it, now or later.
   * @throws HoldfastError `CURSOR_INVALID`
   */
  readonly changes: Method<
    [options?: PageOptions],
    Page<ProcessChange> & { readonly next: string }
  >;
  /**
   * Running processes that nobody works on, by id, with what is to be done
   * about each. `limit` is how many running processes are looked at, so a page
   * may be empty and have a next one. A lease that is found to have run out is
   * recorded as over.
   * @throws HoldfastError `CURSOR_INVALID`
   */
  worklist(options?: ProcessWorklistOptions): Promise<Page<RecoverableProcess>>;
  /**
   * The first event of a type behind a number: at once if it is there.
   * @throws HoldfastError `PROCESS_NOT_FOUND`, `PROCESS_PRUNED`, `ABORTED`, `DEADLINE_EXCEEDED`, `CORRUPT_ROW`
   * @example
   * const event = await processes.waitForEvent("build-7", { type: "progress", after: 3 }, { timeout: "1m" });
   */
  waitForEvent(
    process: string,
    awaited?: AwaitedProcessEvent,
    wait?: WaitOptions,
  ): Promise<ProcessEventView>;
  /** The n-th signal of a name, from 1 on. @throws HoldfastError as `waitForEvent`, and `NAME_INVALID` */
  waitForSignal(
    process: string,
    signal: string,
    ordinal: number,
    wait?: WaitOptions,
  ): Promise<ProcessEventView>;
  /** What a process ends with. @throws HoldfastError as `waitForEvent` */
  waitForEnd(process: string, wait?: WaitOptions): Promise<ProcessOutput>;
  /**
   * Makes tombstones of processes that ended long ago, in small transactions:
   * their names, status, times and hashes stay, their payloads go. Stopping it,
   * or a crash, leaves at most one that the next call goes on with first. An
   * execution of theirs may then be removed by retention too.
   * @throws HoldfastError `ABORTED`, `OPTION_INVALID`, `DURATION_INVALID`
   * @example
   * const { pruned } = await processes.prune({ olderThan: "30 days" });
   */
  prune(
    policy: {
      /** How long ago a process must have ended. */
      readonly olderThan: Duration;
    },
    options?: SweepOptions<Pruned>,
  ): Promise<Pruned>;
}

/**
 * The process registry. Holds nothing, so there may be any number of these
 * over one database.
 */
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
    grants: lists(context, grantList),
    get: reads(context, readProcess, givenProcess, shownProcess),
    output: reads(context, readEnd, givenProcess, shownEnd),
    events: lists(context, eventList),
    recent: reads(context, recentEvents, givenRecent),
    count: reads(context, countEvents, givenCount),
    list: lists(context, processList),
    changes: lists(context, changeList) as Processes["changes"],
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
