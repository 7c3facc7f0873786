import { HoldfastError, unreachable } from "../errors.ts";
import type { ControlEvent, ExecutionEvent, LossCount } from "./event.ts";
import { eventsInvalid, executionFinished, messageUnread, refusedByLifecycle } from "./errors.ts";
import type { ExecutionId } from "../ids/execution-id.ts";
import { continuationOf, type JoinSetId } from "../ids/join-set-id.ts";
import { canAppendLock } from "./lock.ts";
import {
  asleep,
  dueAgain,
  dueForCleanUp,
  isHeld,
  keptLonger,
  released,
  takenFromAll,
  withoutLease,
  woken,
} from "./pending.ts";
import { isSleeping, lastHolder } from "./state.ts";
import type { BlockedOn, ExecutionState, Lifecycle } from "./state.ts";
import { isFound, isHistoryEvent, joinSetIn, showsProgress } from "./history-event.ts";
import type { HistoryEvent } from "./history-event.ts";

/** An event about to be appended, with facts that only the database knows. */
export interface Appending {
  readonly at: number;
  readonly event: ExecutionEvent;
  /** For `joinNext`, `joinNextTried` and `waiting`: the instant of the response, if it came. */
  readonly answeredAt: number | null;
  /** For the first two: the number of the question within its set, counted from 1. */
  readonly ordinal?: number | undefined;
  /** For `receiveTimedOut`: the first message of its name that the code had not been given. */
  readonly unread?: number | undefined;
}

/** The events that any caller may append while an execution is not active. */
const allowedWhile: Readonly<
  Record<Exclude<Lifecycle, "active">, ReadonlySet<ExecutionEvent["kind"]>>
> = {
  paused: new Set(["unpaused", "cancellationRequested", "finished"]),
  cancelling: new Set(["locked", "finished"]),
  parked: new Set(["unparked", "locked", "cancellationRequested", "finished"]),
};

/** The events that end a worker's hold. */
const endingHold: ReadonlySet<ExecutionEvent["kind"]> = new Set([
  "unlocked",
  "attemptTimedOut",
  "ownerDied",
] as const);

/** The events of an external execution. No worker locks it, so nothing else may make it due. */
const allowedForExternal: ReadonlySet<ExecutionEvent["kind"]> = new Set([
  "paused",
  "unpaused",
  "parked",
  "unparked",
  "cancellationRequested",
  "finished",
  "created",
  "forked",
] as const);

/**
 * Returns the state after an event, or throws the reason why it cannot be appended.
 *
 * @throws HoldfastError `EXECUTION_FINISHED`, `EXECUTION_PAUSED`, `EXECUTION_CANCELLING`,
 * `EXECUTION_PARKED`, `EXECUTION_NOT_PAUSED`, `EXECUTION_NOT_PARKED`, `EXECUTION_RUNNING`,
 * `UNLOCK_REFUSED`, `EVENTS_INVALID`, `MESSAGE_UNREAD`, and the errors of `canAppendLock`.
 */
export function afterEvent(
  id: ExecutionId,
  state: ExecutionState,
  appending: Appending,
): ExecutionState {
  const { event } = appending;
  const { lifecycle, pending } = state;
  if (pending.kind === "finished") throw executionFinished(id, state.version);
  if (lifecycle !== "active" && !isAllowed(state, lifecycle, appending))
    throw refusedByLifecycle(id, lifecycle);
  if (state.role === "external" && !allowedForExternal.has(event.kind))
    throw eventsInvalid(
      id,
      "role",
      `no worker runs it, so it cannot have a "${event.kind}" event. Resolve or cancel it.`,
    );
  const next = isHistoryEvent(event)
    ? afterHistory(id, state, appending, event)
    : afterControl(id, state, appending.at, event);
  return { ...next, version: state.version + 1 };
}

/**
 * True for an event that is allowed in this lifecycle. A worker that holds a paused or cancelling
 * execution may still record its progress. An event that ends the hold can always be recorded.
 */
function isAllowed(
  { pending }: ExecutionState,
  lifecycle: Exclude<Lifecycle, "active">,
  { at, event }: Appending,
): boolean {
  if (allowedWhile[lifecycle].has(event.kind)) return true;
  if (event.kind === "cancellationRequested") return event.cause === "force";
  return (
    lifecycle !== "parked" &&
    isHeld(pending, at) &&
    (isHistoryEvent(event) || endingHold.has(event.kind))
  );
}

function afterHistory(
  id: ExecutionId,
  state: ExecutionState,
  { at, answeredAt, ordinal, unread }: Appending,
  event: HistoryEvent,
): ExecutionState {
  assertSeen(id, state, event.seen);
  if (event.kind === "receiveTimedOut" && unread !== undefined)
    throw messageUnread(id, event.signal, unread);
  const joinSet = joinSetIn(event);
  if (joinSet !== undefined && continuationOf(joinSet) !== state.continuations)
    throw eventsInvalid(
      id,
      "owner",
      `${joinSet} is not a set of its current run, which has been continued ${state.continuations} times. Name sets with that number.`,
    );
  const moved = { ...state, ...(showsProgress(event) && noDeaths) };
  if (isFound(event) && answeredAt === null)
    throw eventsInvalid(
      id,
      "response",
      `it cannot have found response ${ordinal} of its set ${event.joinSet}, which has not come.`,
    );
  if (event.kind !== "joinNext" && event.kind !== "waiting") return moved;
  const lastLock = lastHolder(state.pending);
  const leaseUntil = event.runExpiresAt > at ? event.runExpiresAt : null;
  if (answeredAt !== null) {
    const dueAt = Math.max(event.runExpiresAt, answeredAt);
    return {
      ...moved,
      pending: { kind: "pending", dueAt, leaseUntil, lastLock },
    };
  }
  if (event.kind === "waiting" && event.wakeAt !== null) {
    const { seen, wakeAt } = event;
    return {
      ...moved,
      pending: asleep({ seen, wakeAt, leaseUntil, lastLock }),
    };
  }
  const on = blockedBy(id, event, ordinal);
  return { ...moved, pending: { kind: "blocked", on, leaseUntil, lastLock } };
}

function assertSeen(id: ExecutionId, { responses }: ExecutionState, seen: number): void {
  if (seen > responses)
    throw eventsInvalid(
      id,
      "response",
      `it cannot have seen ${seen} responses, since there are ${responses}.`,
    );
}

function blockedBy(
  id: ExecutionId,
  event: Extract<HistoryEvent, { readonly kind: "joinNext" | "waiting" }>,
  ordinal: number | undefined,
): BlockedOn {
  if (event.kind === "waiting") return { kind: "responses", seen: event.seen };
  if (ordinal === undefined) throw new Error(`A question of ${id} came without its number.`);
  const { joinSet, isClosing } = event;
  return { kind: "joinSet", joinSet, ordinal, isClosing };
}

const noDeaths = { deaths: 0, aloneDeaths: 0 } as const;

/** Counts the loss of a worker. It counts as nothing after progress, or when it was no death. */
function lossCounted(
  { failures, deaths, aloneDeaths }: ExecutionState,
  counts: LossCount,
): Pick<ExecutionState, "failures" | "deaths" | "aloneDeaths"> {
  switch (counts) {
    case "attempt":
      return { failures: failures + 1, ...noDeaths };
    case "death":
      return { failures, deaths: deaths + 1, aloneDeaths };
    case "aloneDeath":
      return { failures, deaths: deaths + 1, aloneDeaths: aloneDeaths + 1 };
    case "nothing":
      return { failures, deaths, aloneDeaths };
    default:
      return unreachable(counts);
  }
}

function afterControl(
  id: ExecutionId,
  state: ExecutionState,
  at: number,
  event: ControlEvent,
): ExecutionState {
  switch (event.kind) {
    case "locked":
      return afterLock(id, state, at, event);
    case "unlocked":
      return { ...state, pending: released(id, state.pending, event.dueAt) };
    case "attemptFailed":
      return {
        ...state,
        ...lossCounted(state, "attempt"),
        pending: dueAgain(state.pending, event.dueAt),
      };
    case "attemptTimedOut":
      return {
        ...state,
        ...lossCounted(state, event.counts),
        pending: dueAgain(state.pending, event.dueAt),
      };
    case "ownerDied":
      return {
        ...state,
        ...lossCounted(state, event.counts),
        pending: withoutLease(state.pending, event.dueAt),
      };
    case "continued":
      if (state.role !== "workflow")
        throw eventsInvalid(id, "role", "only a workflow can be continued.");
      assertSeen(id, state, event.seen);
      return {
        ...state,
        pending: dueAgain(state.pending, at),
        failures: 0,
        ...noDeaths,
        incompatible: [],
        historyFrom: state.version + 1,
        responsesFrom: state.responses,
        continuations: state.continuations + 1,
      };
    case "finished":
      return {
        ...state,
        lifecycle: "active",
        pending: {
          kind: "finished",
          finishedAt: at,
          resultKind: event.resultKind,
        },
      };
    case "created":
    case "forked":
      throw eventsInvalid(
        id,
        "kind",
        `"${event.kind}" is written only by ${event.kind === "created" ? "create" : "fork"}. Use that.`,
      );
    default:
      return afterLifecycle(id, state, at, event);
  }
}

function afterLock(
  id: ExecutionId,
  state: ExecutionState,
  at: number,
  event: Extract<ControlEvent, { readonly kind: "locked" }>,
): ExecutionState {
  canAppendLock(id, state, { at, ...event });
  const { holder, leaseUntil, retry, codeVersion, alone = false } = event;
  return {
    ...state,
    pending: keptLonger(state.pending, at, event) ?? {
      kind: "locked",
      holder,
      leaseUntil,
      lockVersion: state.version + 1,
      isAlone: alone,
    },
    // A parked execution resumes when other code takes it.
    lifecycle: state.lifecycle === "parked" ? "active" : state.lifecycle,
    retry,
    codeVersion: codeVersion ?? state.codeVersion,
  };
}

type LifecycleEvent = Extract<
  ControlEvent,
  {
    readonly kind: "paused" | "unpaused" | "cancellationRequested" | "parked" | "unparked";
  }
>;

function afterLifecycle(
  id: ExecutionId,
  state: ExecutionState,
  at: number,
  event: LifecycleEvent,
): ExecutionState {
  switch (event.kind) {
    case "paused":
      if (state.role !== "workflow" && isHeld(state.pending, at)) throw stillRunning(id);
      return { ...state, lifecycle: "paused" };
    case "unpaused":
      if (state.lifecycle !== "paused") throw notSo(id, "EXECUTION_NOT_PAUSED", "paused");
      return { ...state, lifecycle: "active" };
    case "cancellationRequested":
      return {
        ...state,
        lifecycle: "cancelling",
        // Those deaths happened in other code than its cleanup.
        aloneDeaths: 0,
        // An execution that no version could resume may be ended by any worker.
        incompatible: state.lifecycle === "parked" ? [] : state.incompatible,
        pending:
          event.cause === "force" ? takenFromAll(state.pending) : dueForCleanUp(state.pending, at),
      };
    case "parked":
      return {
        ...state,
        lifecycle: "parked",
        // Without a version it waits until a caller unparks it.
        incompatible:
          event.codeVersion === null ? [] : remembered(state.incompatible, event.codeVersion),
        pending: withoutLease(state.pending, at),
      };
    case "unparked":
      if (state.lifecycle !== "parked") throw notSo(id, "EXECUTION_NOT_PARKED", "parked");
      return { ...state, lifecycle: "active", ...noDeaths, incompatible: [] };
    default:
      return unreachable(event);
  }
}

/**
 * The limit of the remembered versions. They are part of an index with short entries, so only the
 * newest are kept.
 */
const memoryCharactersMax = 512;

function remembered(versions: readonly string[], version: string): readonly string[] {
  const all = [...versions.filter((known) => known !== version), version];
  while (all.length > 1 && JSON.stringify(all).length > memoryCharactersMax) all.shift();
  return all;
}

function stillRunning(id: ExecutionId): HoldfastError {
  return new HoldfastError(
    "EXECUTION_RUNNING",
    `Run ${id} is running, so it cannot be paused now. Cancel it instead, or wait until it is released.`,
    { id },
  );
}

function notSo(
  id: ExecutionId,
  code: "EXECUTION_NOT_PAUSED" | "EXECUTION_NOT_PARKED",
  what: string,
): HoldfastError {
  return new HoldfastError(code, `Run ${id} is not ${what}; nothing was changed.`, { id });
}

/** A response as far as the state depends on it. */
export interface Arriving {
  readonly at: number;
  /** The join set of the response; null for a signal. */
  readonly joinSet: JoinSetId | null;
  /** The number of the response within its set or signal, counted from 1. */
  readonly ordinal: number;
}

/** Returns the state after the next response. A finished execution only counts it. */
export function afterResponse(state: ExecutionState, arriving: Arriving): ExecutionState {
  const { at } = arriving;
  const { pending } = state;
  const counted = { ...state, responses: state.responses + 1 };
  // A response to an earlier run does not wake this one.
  const isNews =
    arriving.joinSet === null || continuationOf(arriving.joinSet) === state.continuations;
  const isAnswer =
    isNews &&
    (isSleeping(pending) || (pending.kind === "blocked" && answers(pending.on, arriving)));
  return isAnswer ? { ...counted, pending: woken(pending, at) } : counted;
}

function answers(on: BlockedOn, { joinSet, ordinal }: Arriving): boolean {
  switch (on.kind) {
    // Earlier responses answer questions that were asked before the current one.
    case "joinSet":
      return on.joinSet === joinSet && ordinal >= on.ordinal;
    // It was blocked because no response after `seen` was there, and this response is newer.
    case "responses":
      return true;
    case "resolution":
      return false;
    default:
      return unreachable(on);
  }
}
