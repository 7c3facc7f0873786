import { unreachable } from "../errors.ts";
import type { ExecutionEvent, Holder, LoggedResponse } from "./event.ts";
import type { BlockedOn, ExecutionState, PendingState } from "./state.ts";

/** An event with how many responses there were when it was appended. */
export interface FoldedEvent {
  readonly version: number;
  readonly at: number;
  readonly responses: number;
  readonly event: ExecutionEvent;
}

/** A lease that was moved without an event: after how many events and responses, and to which end. */
export interface Renewal {
  readonly version: number;
  readonly responses: number;
  readonly leaseUntil: number;
}

/** Where the last run under the id begins, and how many there were before it. */
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

/** What the runs before left to this one. */
function isLeftUnread({ seq }: LoggedResponse, start: Start | undefined): boolean {
  const left = start?.event.left ?? [];
  return left.some(([first, last]) => first <= seq && seq <= last);
}

/** Events, responses and renewals in the one order in which they came. */
type Item =
  | { readonly index: number; readonly logged: FoldedEvent }
  | { readonly arrived: LoggedResponse }
  | { readonly renewed: Renewal };

/** Where an execution stands, read from the newest of all that happened backwards. */
export function pendingAfter(
  events: readonly FoldedEvent[],
  responses: readonly LoggedResponse[],
  renewals: readonly Renewal[],
): PendingState {
  const items: Item[] = [];
  let next = 0;
  let last = -1;
  let arrivedUpTo = 0;
  const push = (item: Item): void => {
    items.push(item);
    for (const renewed of renewals)
      if (renewed.version === last && renewed.responses === arrivedUpTo) items.push({ renewed });
  };
  const pushArrived = (upTo: number): void => {
    for (; (responses[next]?.seq ?? Infinity) <= upTo; next += 1) {
      const arrived = responses[next] as LoggedResponse;
      arrivedUpTo = arrived.seq;
      push({ arrived });
    }
  };
  events.forEach((logged, index) => {
    pushArrived(logged.responses);
    last = logged.version;
    arrivedUpTo = logged.responses;
    push({ index, logged });
  });
  pushArrived(Number.MAX_SAFE_INTEGER);
  return stateAt(items, items.length - 1, events, responses);
}

/** The state after item `at`: the first item backwards that decides it does. */
function stateAt(
  items: readonly Item[],
  at: number,
  events: readonly FoldedEvent[],
  responses: readonly LoggedResponse[],
): PendingState {
  const before = (): PendingState => stateAt(items, at - 1, events, responses);
  const item = items[at];
  if (item === undefined) throw new Error("No item decides the state.");
  if ("arrived" in item) {
    const earlier = items.slice(0, at).flatMap((each) => ("logged" in each ? each.logged : []));
    const { continuations } = startsOf(earlier);
    return unblocked(before(), item.arrived, continuations, responses);
  }
  if ("renewed" in item) return keptUntil(before(), item.renewed.leaseUntil);
  const { index, logged } = item;
  const { event } = logged;
  const lastLock = lastLockIn(events.slice(0, index + 1));
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
    case "locked":
      return afterLock(before(), event, logged);
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
    case "unlocked":
    case "ownerDied":
      return letGo(before(), event.dueAt, lastLock);
    case "parked":
      return letGo(before(), logged.at, lastLock);
    case "joinNext":
    case "waiting":
      return afterWait(event, index, logged, events, responses);
    case "cancellationRequested":
      return event.cause === "force" ? untilResolved(lastLock) : told(before(), logged.at);
    default:
      return before();
  }
}

/** A run that locks what it keeps while that waits keeps it for longer; it goes on waiting. */
function afterLock(
  state: PendingState,
  { holder, leaseUntil }: Extract<ExecutionEvent, { readonly kind: "locked" }>,
  { at, version }: FoldedEvent,
): PendingState {
  if (state.kind === "blocked") return { ...state, leaseUntil };
  if (isAsleep(state) && state.dueAt > at)
    return { ...state, leaseUntil, dueAt: later(state.wakeAt, leaseUntil) };
  return { kind: "locked", holder, leaseUntil, lockVersion: version };
}

/** A renewal never takes time away. */
function keptUntil(state: PendingState, until: number): PendingState {
  if (state.kind === "finished" || state.leaseUntil === null) return state;
  const leaseUntil = later(until, state.leaseUntil);
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
  const lastLock = lastLockIn(events.slice(0, index + 1));
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

/** The response that a wait asks for, among those that had come when it was appended. */
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
    const start = lastStart(events.slice(0, index));
    return there.find(
      (arrived) =>
        arrived.seq > event.seen &&
        (arrived.seq > responsesFrom
          ? isForRun(arrived, continuations)
          : isLeftUnread(arrived, start)),
    );
  }
  const asked = questionsTo(event.joinSet, events.slice(0, index + 1));
  return ofSet(event.joinSet, there)[asked - 1];
}

function questionsTo(joinSet: string, events: readonly FoldedEvent[]): number {
  return events.filter(({ event }) => {
    if (event.kind === "joinNext") return event.joinSet === joinSet;
    // It was given a response, which the next question does not get again.
    return event.kind === "joinNextTried" && event.outcome === "found" && event.joinSet === joinSet;
  }).length;
}

function ofSet(joinSet: string, responses: readonly LoggedResponse[]): readonly LoggedResponse[] {
  return responses.filter(
    ({ response }) => response.kind !== "signal" && response.joinSet === joinSet,
  );
}

/** The sets of a run have its number behind their first letter; signals are for whichever run there is. */
function isForRun({ response }: LoggedResponse, run: number): boolean {
  if (response.kind === "signal") return true;
  const number = /^[a-z]([0-9]*):/.exec(response.joinSet)?.[1] ?? "";
  return number === (run === 0 ? "" : String(run));
}

/** A set's n-th response, and no other, ends the wait for it; what another run asked for ends none. */
function unblocked(
  state: PendingState,
  arrived: LoggedResponse,
  run: number,
  responses: readonly LoggedResponse[],
): PendingState {
  const { at, seq } = arrived;
  if (!isForRun(arrived, run)) return state;
  if (isAsleep(state)) return roused(state, at);
  if (state.kind !== "blocked" || state.on.kind === "resolution") return state;
  if (state.on.kind === "joinSet") {
    const awaited = ofSet(state.on.joinSet, responses)[state.on.ordinal - 1];
    if (awaited?.seq !== seq) return state;
  }
  return roused(state, at);
}

/** Due now, or when who keeps it has had its time; never later than it was. */
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

function letGo(state: PendingState, dueAt: number, lastLock: Holder | null): PendingState {
  switch (state.kind) {
    case "locked":
      return { kind: "pending", dueAt, leaseUntil: null, lastLock };
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

/** Nobody runs it; somebody outside ends it. */
function untilResolved(lastLock: Holder | null): PendingState {
  const on = { kind: "resolution" } as const;
  return { kind: "blocked", on, leaseUntil: null, lastLock };
}

/** Asked to end: who runs it or keeps it hears of it, and everybody else may take it now. */
function told(state: PendingState, at: number): PendingState {
  const isWaiting =
    state.kind === "pending" || (state.kind === "blocked" && state.on.kind !== "resolution");
  return isWaiting ? roused(state, at) : state;
}

function lastLockIn(events: readonly FoldedEvent[]): Holder | null {
  for (const { event } of events.toReversed()) {
    if (event.kind === "forked") return null;
    if (event.kind === "locked") return event.holder;
  }
  return null;
}
