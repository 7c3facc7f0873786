import { unreachable } from "../errors.ts";
import type { ExecutionEvent, Holder, LoggedResponse } from "./event.ts";
import type { BlockedOn, ExecutionState, PendingState } from "./state.ts";

/** An event with the number of responses at the time of its append. */
export interface FoldedEvent {
  readonly version: number;
  readonly at: number;
  readonly responses: number;
  readonly event: ExecutionEvent;
}

/** A lease that was moved without an event. */
interface MovedLease {
  readonly leaseUntil: number;
  /** The worker runs other work beside it from then on. */
  readonly beside?: boolean | undefined;
}

/** A moved lease with the numbers of events and responses before it. */
export interface Renewal extends MovedLease {
  readonly version: number;
  readonly responses: number;
}

/** Returns the start of the last run under the id, and the number of runs before it. */
export function startsOf(
  events: readonly FoldedEvent[],
): Pick<ExecutionState, "historyFrom" | "responsesFrom" | "continuations"> {
  const { version, responses, event } = lastStart(events) ?? {};
  return {
    historyFrom: version ?? 0,
    responsesFrom: responses ?? 0,
    continuations: event?.continuation ?? 0,
  };
}

type Start = FoldedEvent & {
  readonly event: Extract<ExecutionEvent, { readonly kind: "continued" }>;
};

function lastStart(events: readonly FoldedEvent[]): Start | undefined {
  return events.findLast((logged): logged is Start => logged.event.kind === "continued");
}

/** True for a signal that earlier runs left to the one in which these events end. */
export function isLeftUnread({ seq }: LoggedResponse, events: readonly FoldedEvent[]): boolean {
  const left = lastStart(events)?.event.left ?? [];
  return left.some(([first, last]) => first <= seq && seq <= last);
}

/** Returns the leases that were moved after an event and after a number of responses. */
export type RenewedAfter = (version: number, responses: number) => readonly MovedLease[];

/**
 * Returns the state of an execution: the one set by its newest deciding event, updated by
 * everything after that event.
 */
export function pendingAfter(
  events: readonly FoldedEvent[],
  responses: readonly LoggedResponse[],
  renewedAfter: RenewedAfter,
): PendingState {
  const from = events.findLastIndex(({ event }) => isDeciding(event));
  const decider = events[from];
  if (decider === undefined) throw new Error("No event decides the state.");
  let state = decidedBy(decider, from, events, responses);
  const renew = (version: number, seq: number): void => {
    for (const moved of renewedAfter(version, seq)) state = keptUntil(state, moved);
  };
  renew(decider.version, decider.responses);
  const { continuations } = startsOf(events);
  const answer = answerTo(state, responses);
  let last = decider;
  let next = responses.findIndex(({ seq }) => seq > decider.responses);
  const arriveUpTo = (seq: number): void => {
    for (let arrived = responses[next]; arrived !== undefined && arrived.seq <= seq;) {
      state = unblocked(state, arrived, continuations, answer);
      renew(last.version, arrived.seq);
      next += 1;
      arrived = responses[next];
    }
  };
  for (const logged of events.slice(from + 1)) {
    if (next >= 0) arriveUpTo(logged.responses);
    state = movedBy(state, logged);
    last = logged;
    renew(logged.version, logged.responses);
  }
  if (next >= 0) arriveUpTo(Number.MAX_SAFE_INTEGER);
  return state;
}

/** True for an event that makes everything before it irrelevant to the state. */
function isDeciding(event: ExecutionEvent): boolean {
  return event.kind === "cancellationRequested"
    ? event.cause === "force"
    : decidingKinds.has(event.kind);
}

const decidingKinds: ReadonlySet<ExecutionEvent["kind"]> = new Set([
  "created",
  "finished",
  "attemptFailed",
  "attemptTimedOut",
  "continued",
  "forked",
  "joinNext",
  "waiting",
] as const);

function decidedBy(
  logged: FoldedEvent,
  index: number,
  events: readonly FoldedEvent[],
  responses: readonly LoggedResponse[],
): PendingState {
  const { event } = logged;
  const lastLock = lastLockIn(events, index);
  switch (event.kind) {
    case "created":
      return event.role === "external"
        ? untilResolved(lastLock)
        : {
            kind: "pending",
            dueAt: event.scheduledAt,
            leaseUntil: null,
            lastLock,
          };
    case "finished":
      return {
        kind: "finished",
        finishedAt: logged.at,
        resultKind: event.resultKind,
      };
    case "attemptFailed":
    case "attemptTimedOut":
      return {
        kind: "pending",
        dueAt: event.dueAt,
        leaseUntil: null,
        lastLock,
      };
    case "continued":
    case "forked":
      return { kind: "pending", dueAt: logged.at, leaseUntil: null, lastLock };
    case "joinNext":
    case "waiting":
      return afterWait(event, index, logged, events, responses);
    case "cancellationRequested":
      return untilResolved(lastLock);
    default:
      throw new Error(`An event of kind ${event.kind} decides nothing by itself.`);
  }
}

/** Returns the state after an event whose effect depends on the state before. */
function movedBy(state: PendingState, logged: FoldedEvent): PendingState {
  const { event } = logged;
  switch (event.kind) {
    case "locked":
      return afterLock(state, event, logged);
    case "unlocked":
    case "ownerDied":
      return letGo(state, event.dueAt);
    case "parked":
      return letGo(state, logged.at);
    case "cancellationRequested":
      return told(state, logged.at);
    default:
      return state;
  }
}

/** Extends the hold when a run locks an execution it keeps in memory; the execution still waits. */
function afterLock(
  state: PendingState,
  { holder, leaseUntil, alone }: Extract<ExecutionEvent, { readonly kind: "locked" }>,
  { at, version }: FoldedEvent,
): PendingState {
  if (state.kind === "blocked") return { ...state, leaseUntil };
  if (isAsleep(state) && state.dueAt > at)
    return { ...state, leaseUntil, dueAt: later(state.wakeAt, leaseUntil) };
  return { kind: "locked", holder, leaseUntil, lockVersion: version, isAlone: alone === true };
}

/** A renewal never shortens a lease. */
function keptUntil(
  state: PendingState,
  { leaseUntil: until, beside = false }: MovedLease,
): PendingState {
  if (state.kind === "finished" || state.leaseUntil === null) return state;
  const leaseUntil = later(until, state.leaseUntil);
  if (state.kind === "locked") return { ...state, leaseUntil, isAlone: state.isAlone && !beside };
  return state.kind === "pending"
    ? { ...state, leaseUntil, dueAt: later(until, state.dueAt) }
    : { ...state, leaseUntil };
}

type Asleep = Extract<PendingState, { readonly wakeAt: number }>;

function isAsleep(state: PendingState): state is Asleep {
  return state.kind === "pending" && "wakeAt" in state;
}

function later(instant: number, leaseUntil: number | null): number {
  return leaseUntil !== null && leaseUntil > instant ? leaseUntil : instant;
}

function afterWait(
  event: Wait,
  index: number,
  logged: FoldedEvent,
  events: readonly FoldedEvent[],
  responses: readonly LoggedResponse[],
): PendingState {
  const lastLock = lastLockIn(events, index);
  const answer = responseFor(event, index, logged, events, responses);
  const leaseUntil = event.runExpiresAt > logged.at ? event.runExpiresAt : null;
  if (answer !== undefined)
    return {
      kind: "pending",
      dueAt: Math.max(event.runExpiresAt, answer.at),
      leaseUntil,
      lastLock,
    };
  if (event.kind === "waiting" && event.wakeAt !== null)
    return {
      kind: "pending",
      dueAt: later(event.wakeAt, leaseUntil),
      leaseUntil,
      lastLock,
      seen: event.seen,
      wakeAt: event.wakeAt,
    };
  const on: BlockedOn =
    event.kind === "joinNext"
      ? {
          kind: "joinSet",
          joinSet: event.joinSet,
          ordinal: questionsTo(event.joinSet, events.slice(0, index + 1)),
          isClosing: event.isClosing,
        }
      : { kind: "responses", seen: event.seen };
  return { kind: "blocked", on, leaseUntil, lastLock };
}

type Wait = Extract<ExecutionEvent, { readonly kind: "joinNext" | "waiting" }>;

/** Returns the response that a wait asks for, among the responses at the time of its append. */
function responseFor(
  event: Wait,
  index: number,
  logged: FoldedEvent,
  events: readonly FoldedEvent[],
  responses: readonly LoggedResponse[],
): LoggedResponse | undefined {
  const there = responses.filter(({ seq }) => seq <= logged.responses);
  if (event.kind === "waiting") {
    const { responsesFrom, continuations } = startsOf(events.slice(0, index));
    return there.find(
      (arrived) =>
        arrived.seq > event.seen &&
        (arrived.seq > responsesFrom
          ? isForRun(arrived, continuations)
          : isLeftUnread(arrived, events.slice(0, index))),
    );
  }
  const asked = questionsTo(event.joinSet, events.slice(0, index + 1));
  return ofSet(event.joinSet, there)[asked - 1];
}

function questionsTo(joinSet: string, events: readonly FoldedEvent[]): number {
  return events.filter(({ event }) => {
    if (event.kind === "joinNext") return event.joinSet === joinSet;
    // This question received a response, which the next question does not get again.
    return event.kind === "joinNextTried" && event.outcome === "found" && event.joinSet === joinSet;
  }).length;
}

function ofSet(joinSet: string, responses: readonly LoggedResponse[]): readonly LoggedResponse[] {
  return responses.filter(
    ({ response }) => response.kind !== "signal" && response.joinSet === joinSet,
  );
}

/**
 * True for a response to this run. The sets of a run have its number after their first letter. A
 * signal is for any run.
 */
function isForRun({ response }: LoggedResponse, run: number): boolean {
  if (response.kind === "signal") return true;
  const number = /^[a-z]([0-9]*):/.exec(response.joinSet)?.[1] ?? "";
  return number === (run === 0 ? "" : String(run));
}

/**
 * Returns the number of the response that ends the wait for one set; undefined when any response
 * ends it or none is there.
 */
function answerTo(state: PendingState, responses: readonly LoggedResponse[]): number | undefined {
  if (state.kind !== "blocked" || state.on.kind !== "joinSet") return undefined;
  return ofSet(state.on.joinSet, responses)[state.on.ordinal - 1]?.seq;
}

/**
 * Returns the state after a response. Only a set's n-th response ends the wait for it. Responses to
 * other runs end no wait.
 */
function unblocked(
  state: PendingState,
  arrived: LoggedResponse,
  run: number,
  answer: number | undefined,
): PendingState {
  const { at, seq } = arrived;
  if (!isForRun(arrived, run)) return state;
  if (isAsleep(state)) return roused(state, at);
  if (state.kind !== "blocked" || state.on.kind === "resolution") return state;
  if (state.on.kind === "joinSet" && answer !== seq) return state;
  return roused(state, at);
}

/**
 * Returns the execution as due now, or at the end of the lease of the worker that keeps it. It is
 * never due later than before.
 */
function roused(
  state: Extract<PendingState, { readonly kind: "pending" | "blocked" }>,
  at: number,
): PendingState {
  const { lastLock } = state;
  const leaseUntil = later(at, state.leaseUntil) > at ? state.leaseUntil : null;
  const dueAt = leaseUntil ?? at;
  const isSooner = state.kind === "pending" && state.dueAt < dueAt;
  return {
    kind: "pending",
    dueAt: isSooner ? state.dueAt : dueAt,
    leaseUntil,
    lastLock,
  };
}

function letGo(state: PendingState, dueAt: number): PendingState {
  switch (state.kind) {
    case "locked":
      return { kind: "pending", dueAt, leaseUntil: null, lastLock: state.holder };
    case "pending":
      if (isAsleep(state)) return { ...state, dueAt: state.wakeAt, leaseUntil: null };
      return {
        ...state,
        dueAt: dueAt < state.dueAt ? dueAt : state.dueAt,
        leaseUntil: null,
      };
    case "blocked":
      return { ...state, leaseUntil: null };
    case "finished":
      return state;
    default:
      return unreachable(state);
  }
}

/** Returns a state that no worker runs and that an outside caller ends. */
function untilResolved(lastLock: Holder | null): PendingState {
  const on = { kind: "resolution" } as const;
  return { kind: "blocked", on, leaseUntil: null, lastLock };
}

/**
 * Returns the state after a request to end. The worker that runs or keeps it is notified, and every
 * other worker may take it now.
 */
function told(state: PendingState, at: number): PendingState {
  const isWaiting =
    state.kind === "pending" || (state.kind === "blocked" && state.on.kind !== "resolution");
  return isWaiting ? roused(state, at) : state;
}

function lastLockIn(events: readonly FoldedEvent[], index: number): Holder | null {
  for (let at = index; at >= 0; at -= 1) {
    const event = events[at]?.event;
    if (event?.kind === "forked") return null;
    if (event?.kind === "locked") return event.holder;
  }
  return null;
}
