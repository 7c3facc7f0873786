import { unreachable } from "../errors.ts";
import type { ExecutionEvent, Holder, LoggedResponse } from "./event.ts";
import type {
  BlockedOn,
  ExecutionState,
  Lifecycle,
  PendingState,
} from "./state.ts";
import { isHistoryEvent } from "./history-event.ts";

/** An event with how many responses there were when it was appended. */
export interface FoldedEvent {
  readonly version: number;
  readonly at: number;
  readonly responses: number;
  readonly event: ExecutionEvent;
}

/**
 * The state that a log says an execution is in, read from the newest event
 * backwards. It is written apart from the transitions on purpose: the
 * property tests hold the stored state, which they made, to this.
 */
export function foldExecution(
  events: readonly FoldedEvent[],
  responses: readonly LoggedResponse[],
): ExecutionState {
  const created = events[0]?.event;
  if (created?.kind !== "created")
    throw new Error("A log begins with its creation.");
  const newestFirst = events.toReversed();
  const since = (...kinds: readonly string[]): readonly FoldedEvent[] => {
    const end = newestFirst.findIndex(({ event }) =>
      kinds.includes(event.kind),
    );
    return end < 0 ? newestFirst : newestFirst.slice(0, end);
  };
  const started = since("continued", "forked", "created");
  const lock = newestFirst.find(({ event }) => event.kind === "locked")?.event;
  const codeVersion = newestFirst
    .map(({ event }) => (event.kind === "locked" ? event.codeVersion : null))
    .find((version) => version !== null);
  return {
    role: created.role,
    version: events.length - 1,
    pending: pendingAfter(events, responses),
    lifecycle: lifecycleAfter(newestFirst, created.isPaused),
    failures: started.filter(({ event }) => isFailure(event)).length,
    deaths: deathsInARow(newestFirst),
    retry: lock?.kind === "locked" ? lock.retry : null,
    codeVersion: codeVersion ?? created.codeVersion,
    ...startsOf(events),
    responses: responses.length,
  };
}

/** Where the last run under the id begins, and how many there were before it. */
function startsOf(
  events: readonly FoldedEvent[],
): Pick<ExecutionState, "historyFrom" | "responsesFrom" | "continuations"> {
  const starts = events.filter(({ event }) => event.kind === "continued");
  const last = starts.at(-1);
  return {
    historyFrom: last?.version ?? 0,
    responsesFrom: last?.responses ?? 0,
    continuations: starts.length,
  };
}

function isFailure(event: ExecutionEvent): boolean {
  return (
    event.kind === "attemptFailed" ||
    event.kind === "attemptTimedOut" ||
    (event.kind === "ownerDied" && event.counts === "attempt")
  );
}

function deathsInARow(newestFirst: readonly FoldedEvent[]): number {
  let deaths = 0;
  for (const { event } of newestFirst) {
    if (event.kind === "ownerDied" && event.counts === "death") deaths += 1;
    else if (
      isHistoryEvent(event) ||
      ["ownerDied", "continued", "forked", "unparked"].includes(event.kind)
    )
      break;
  }
  return deaths;
}

function lifecycleAfter(
  newestFirst: readonly FoldedEvent[],
  isCreatedPaused: boolean,
): Lifecycle {
  const meaning: Readonly<Record<string, Lifecycle>> = {
    paused: "paused",
    unpaused: "active",
    cancellationRequested: "cancelling",
    parked: "parked",
    unparked: "active",
    forked: "active",
    finished: "active",
  };
  for (const { event } of newestFirst) {
    const lifecycle = meaning[event.kind];
    if (lifecycle !== undefined) return lifecycle;
  }
  return isCreatedPaused ? "paused" : "active";
}

/** Events and responses in the one order in which they came. */
type Item =
  | { readonly index: number; readonly logged: FoldedEvent }
  | { readonly arrived: LoggedResponse };

function pendingAfter(
  events: readonly FoldedEvent[],
  responses: readonly LoggedResponse[],
): PendingState {
  const items: Item[] = [];
  let next = 0;
  events.forEach((logged, index) => {
    while (next < logged.responses && responses[next] !== undefined)
      items.push({ arrived: responses[next++] as LoggedResponse });
    items.push({ index, logged });
  });
  for (const arrived of responses.slice(next)) items.push({ arrived });
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
  if ("arrived" in item) return unblocked(before(), item.arrived, responses);
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
      return {
        kind: "locked",
        holder: event.holder,
        leaseUntil: event.leaseUntil,
        lockVersion: logged.version,
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
    case "unlocked":
    case "ownerDied":
      return letGo(before(), event.dueAt, lastLock);
    case "parked":
      return letGo(before(), logged.at, lastLock);
    case "joinNext":
    case "waiting":
      return afterWait(event, index, logged, events, responses);
    case "cancellationRequested":
      return event.cause === "force"
        ? untilResolved(lastLock)
        : told(before(), logged.at);
    default:
      return before();
  }
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
  const there = responses.slice(0, logged.responses);
  if (event.kind === "waiting") {
    const { responsesFrom } = startsOf(events.slice(0, index));
    return there.find(({ seq }) => seq > event.seen && seq > responsesFrom);
  }
  const asked = questionsTo(event.joinSet, events.slice(0, index + 1));
  return ofSet(event.joinSet, there)[asked - 1];
}

function questionsTo(joinSet: string, events: readonly FoldedEvent[]): number {
  return events.filter(({ event }) => {
    if (event.kind === "joinNext") return event.joinSet === joinSet;
    // It was given a response, which the next question does not get again.
    return (
      event.kind === "joinNextTried" &&
      event.outcome === "found" &&
      event.joinSet === joinSet
    );
  }).length;
}

function ofSet(
  joinSet: string,
  responses: readonly LoggedResponse[],
): readonly LoggedResponse[] {
  return responses.filter(
    ({ response }) =>
      response.kind !== "signal" && response.joinSet === joinSet,
  );
}

/** A set's n-th response, and no other, ends the wait for it. */
function unblocked(
  state: PendingState,
  { at, seq }: LoggedResponse,
  responses: readonly LoggedResponse[],
): PendingState {
  if (state.kind !== "blocked" || state.on.kind === "resolution") return state;
  if (state.on.kind === "joinSet") {
    const awaited = ofSet(state.on.joinSet, responses)[state.on.ordinal - 1];
    if (awaited?.seq !== seq) return state;
  }
  const isHot = state.leaseUntil !== null && state.leaseUntil > at;
  return {
    kind: "pending",
    dueAt: isHot ? (state.leaseUntil ?? at) : at,
    leaseUntil: isHot ? state.leaseUntil : null,
    lastLock: state.lastLock,
  };
}

function letGo(
  state: PendingState,
  dueAt: number,
  lastLock: Holder | null,
): PendingState {
  switch (state.kind) {
    case "locked":
      return { kind: "pending", dueAt, leaseUntil: null, lastLock };
    case "pending":
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
    state.kind === "pending" ||
    (state.kind === "blocked" && state.on.kind !== "resolution");
  if (!isWaiting) return state;
  const isKept = state.leaseUntil !== null && state.leaseUntil > at;
  const next = isKept ? (state.leaseUntil ?? at) : at;
  if (state.kind === "pending" && state.dueAt <= next) return state;
  return {
    kind: "pending",
    dueAt: next,
    leaseUntil: isKept ? state.leaseUntil : null,
    lastLock: state.lastLock,
  };
}

function lastLockIn(events: readonly FoldedEvent[]): Holder | null {
  for (const { event } of events.toReversed()) {
    if (event.kind === "forked") return null;
    if (event.kind === "locked") return event.holder;
  }
  return null;
}
