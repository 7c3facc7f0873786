import { HoldfastError, unreachable } from "../errors.ts";
import type { ControlEvent, ExecutionEvent } from "./event.ts";
import { eventsInvalid, executionFinished, refusedByLifecycle } from "./errors.ts";
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
import { isFound, isHistoryEvent, joinSetIn } from "./history-event.ts";
import type { HistoryEvent } from "./history-event.ts";

/** An event about to be appended, with what only the database knows about it. */
export interface Appending {
  readonly at: number;
  readonly event: ExecutionEvent;
  /** For `joinNext`, `joinNextTried` and `waiting`: when the response they ask for came, if it has. */
  readonly answeredAt: number | null;
  /** For the first two: the how-manieth question to its set it is, from 1 on. */
  readonly ordinal?: number | undefined;
}

/** What may be appended while an execution is not active, whoever has it. */
const allowedWhile: Readonly<
  Record<Exclude<Lifecycle, "active">, ReadonlySet<ExecutionEvent["kind"]>>
> = {
  paused: new Set(["unpaused", "cancellationRequested", "finished"]),
  cancelling: new Set(["locked", "finished"]),
  parked: new Set(["unparked", "locked", "cancellationRequested", "finished"]),
};

/** What ends the hold of a worker on it. */
const endingHold: ReadonlySet<ExecutionEvent["kind"]> = new Set([
  "unlocked",
  "attemptTimedOut",
  "ownerDied",
] as const);

/** Nobody ever locks an external execution, so nothing else may make it due. */
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
 * The state after an event, or the reason why it cannot be appended.
 *
 * @throws HoldfastError `EXECUTION_FINISHED`, `EXECUTION_PAUSED`,
 *   `EXECUTION_CANCELLING`, `EXECUTION_PARKED`, `EXECUTION_NOT_PAUSED`,
 *   `EXECUTION_NOT_PARKED`, `EXECUTION_RUNNING`, `UNLOCK_REFUSED`,
 *   `EVENTS_INVALID`, and those of `canAppendLock`.
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
      `nothing runs it, so it can have no "${event.kind}". Resolve or cancel it.`,
    );
  const next = isHistoryEvent(event)
    ? afterHistory(id, state, appending, event)
    : afterControl(id, state, appending.at, event);
  return { ...next, version: state.version + 1 };
}

/**
 * A worker that has a paused execution, or one that is being cancelled, may
 * record what it still does; and whatever ends its hold can be recorded.
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
  { at, answeredAt, ordinal }: Appending,
  event: HistoryEvent,
): ExecutionState {
  assertSeen(id, state, event.seen);
  const joinSet = joinSetIn(event);
  if (joinSet !== undefined && continuationOf(joinSet) !== state.continuations)
    throw eventsInvalid(
      id,
      "owner",
      `${joinSet} is not a set of its run, which was started anew ${state.continuations} times. Name sets with that number.`,
    );
  const moved = { ...state, deaths: 0 };
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

function failed(state: ExecutionState, dueAt: number): ExecutionState {
  return {
    ...state,
    pending: dueAgain(state.pending, dueAt),
    failures: state.failures + 1,
  };
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
      return failed(state, event.dueAt);
    case "attemptTimedOut": {
      // Of a worker that died where nobody can tell, no more is seen.
      const deaths = state.deaths + (state.role === "workflow" ? 1 : 0);
      return { ...failed(state, event.dueAt), deaths };
    }
    case "ownerDied":
      return {
        ...state,
        pending: withoutLease(state.pending, event.dueAt),
        failures: state.failures + (event.counts === "attempt" ? 1 : 0),
        deaths: event.counts === "death" ? state.deaths + 1 : 0,
      };
    case "continued":
      if (state.role !== "workflow")
        throw eventsInvalid(id, "role", "only a workflow can be continued.");
      assertSeen(id, state, event.seen);
      return {
        ...state,
        pending: dueAgain(state.pending, at),
        failures: 0,
        deaths: 0,
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
        `"${event.kind}" is written by ${event.kind === "created" ? "create" : "fork"} alone. Use that.`,
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
  const { holder, leaseUntil, retry, codeVersion } = event;
  return {
    ...state,
    pending: keptLonger(state.pending, at, event) ?? {
      kind: "locked",
      holder,
      leaseUntil,
      lockVersion: state.version + 1,
    },
    // What was parked goes on when other code takes it.
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
        // What nobody could go on with is ended by whoever tries first.
        incompatible: state.lifecycle === "parked" ? [] : state.incompatible,
        pending:
          event.cause === "force" ? takenFromAll(state.pending) : dueForCleanUp(state.pending, at),
      };
    case "parked":
      return {
        ...state,
        lifecycle: "parked",
        // Without a version it waits for somebody to unpark it.
        incompatible:
          event.codeVersion === null ? [] : remembered(state.incompatible, event.codeVersion),
        pending: withoutLease(state.pending, at),
      };
    case "unparked":
      if (state.lifecycle !== "parked") throw notSo(id, "EXECUTION_NOT_PARKED", "parked");
      return { ...state, lifecycle: "active", deaths: 0, incompatible: [] };
    default:
      return unreachable(event);
  }
}

/** The memory is part of an index, whose entries are short: of many versions the newest are kept. */
const memoryCharactersMax = 512;

function remembered(versions: readonly string[], version: string): readonly string[] {
  const all = [...versions.filter((known) => known !== version), version];
  while (all.length > 1 && JSON.stringify(all).length > memoryCharactersMax) all.shift();
  return all;
}

function stillRunning(id: ExecutionId): HoldfastError {
  return new HoldfastError(
    "EXECUTION_RUNNING",
    `Execution ${id} is being run, so it cannot be paused as it is. Cancel it instead, or wait until it has been given back.`,
    { id },
  );
}

function notSo(
  id: ExecutionId,
  code: "EXECUTION_NOT_PAUSED" | "EXECUTION_NOT_PARKED",
  what: string,
): HoldfastError {
  return new HoldfastError(code, `Execution ${id} is not ${what}; nothing was changed.`, { id });
}

/** A response as far as the state is concerned. */
export interface Arriving {
  readonly at: number;
  /** The join set it belongs to; null for a signal. */
  readonly joinSet: JoinSetId | null;
  /** The how-manieth of its set or signal it is, from 1 on. */
  readonly ordinal: number;
}

/** The state after the next response. Finished executions take responses too; nothing else changes. */
export function afterResponse(state: ExecutionState, arriving: Arriving): ExecutionState {
  const { at } = arriving;
  const { pending } = state;
  const counted = { ...state, responses: state.responses + 1 };
  // What a run before it asked for is no news to it.
  const isNews =
    arriving.joinSet === null || continuationOf(arriving.joinSet) === state.continuations;
  const isAnswer =
    isNews &&
    (isSleeping(pending) || (pending.kind === "blocked" && answers(pending.on, arriving)));
  return isAnswer ? { ...counted, pending: woken(pending, at) } : counted;
}

function answers(on: BlockedOn, { joinSet, ordinal }: Arriving): boolean {
  switch (on.kind) {
    // Earlier ones answer questions that were asked before the one it waits for.
    case "joinSet":
      return on.joinSet === joinSet && ordinal >= on.ordinal;
    // It was blocked because nothing after `seen` was there, and this comes last.
    case "responses":
      return true;
    case "resolution":
      return false;
    default:
      return unreachable(on);
  }
}
