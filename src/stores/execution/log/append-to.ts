import type { ExecutionEvent } from "../../../model/execution/event.ts";
import { eventsInvalid } from "../../../model/execution/errors.ts";
import { isFound, type ScheduledOutcome } from "../../../model/execution/history-event.ts";
import type { DelayId } from "../../../model/ids/delay-id.ts";
import type { ExecutionId } from "../../../model/ids/execution-id.ts";
import { afterEvent } from "../../../model/execution/transition.ts";
import type { ExecutionState } from "../../../model/execution/state.ts";
import { announce, run, type Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { endProcessOf } from "../../process/parts.ts";
import { endTurn } from "../../queue/turn-row.ts";
import type { ExecutionContext, Finished } from "../context.ts";
import { insertEvent, type EventPlace } from "../event-row.ts";
import { writeState, type ExecutionRecord } from "../state-row.ts";
import { executionEnded } from "../topics.ts";
import type { LockedExecution } from "../lock/locked.ts";
import type { NewChild } from "./children.ts";
import { markRead } from "./continue.ts";
import { createIfFree } from "./create.ts";
import { answerDue, requestDelay, withdrawDelays, type DelayRequested } from "./delay-requests.ts";
import {
  announceState,
  answerTo,
  firstAfter,
  nextQuestion,
  nextSignal,
  respondToParent,
  signalInbox,
  unreadSignal,
} from "./respond.ts";
import { withUnread } from "./unread-at-end.ts";

/** The outcome of a run that an event was to start. */
export interface Scheduled {
  /** The version of the event. */
  readonly version: number;
  readonly outcome: ScheduledOutcome;
}

/** A parent that was notified of the end, and the number of that response there. */
export interface ToldParent {
  readonly id: ExecutionId;
  readonly seq: number;
}

export interface AppendOutcome {
  /** The version of the next event; for a finished execution that of the last one. */
  readonly nextVersion: number;
  /** The recorded instant. */
  readonly at: number;
  /** The number of responses, if the events end with a wait that has not seen them all. */
  readonly responses?: number;
  /** The parent that was notified of the end; missing if there was none. */
  readonly parent?: ToldParent;
  /** The outcome of each run that a "scheduled" event was to start; missing if there was none. */
  readonly scheduled?: readonly Scheduled[];
  /** The children that were created locked; missing if there was none. */
  readonly lockedChildren?: readonly LockedExecution[];
  /** The messages that an ended run has not received; missing if there was none. */
  readonly unread?: number;
}

export function appended(
  nextVersion: number,
  at: number,
  {
    scheduled,
    parent,
    locked,
    unread,
  }: Pick<Effects, "scheduled" | "parent" | "locked"> & { readonly unread?: number | undefined },
): AppendOutcome {
  return {
    nextVersion,
    at,
    ...(parent !== undefined && { parent }),
    ...(scheduled.length > 0 && { scheduled }),
    ...(locked.length > 0 && { lockedChildren: locked }),
    ...(unread !== undefined && { unread }),
  };
}

/** The changes of an append besides the log, gathered while the events are written. */
export interface Effects {
  /** The runs still to be started, in the order of their events. */
  readonly starts: NewChild[];
  readonly scheduled: Scheduled[];
  /** The started runs that are to be locked. */
  readonly started: NewChild[];
  readonly locked: LockedExecution[];
  parent: ToldParent | undefined;
  /** The messages that the ended run has not received. */
  unread: number | undefined;
  /** Expired delays, answered after all events are written. */
  readonly due: DelayRequested[];
  /** Delays withdrawn after all events are written. */
  readonly withdraw: readonly DelayId[];
}

export function effectsOf({
  starts = [],
  withdraw = [],
}: Partial<Pick<Effects, "withdraw">> & {
  readonly starts?: readonly NewChild[];
}): Effects {
  return {
    starts: [...starts],
    scheduled: [],
    started: [],
    locked: [],
    parent: undefined,
    unread: undefined,
    due: [],
    withdraw,
  };
}

/** The context of the end of an execution, which may start a turn. */
type EndContext = Pick<ExecutionContext, "database" | "clock">;

/**
 * Appends events to an execution whose record the transaction has locked. It moves the state,
 * answers the parent when the events end the execution, and notifies waiters. All changes of an
 * execution go through here, except shortcuts that write the same in fewer statements: quiet
 * appends (`append.ts`), the locks of `lockPending`, responses (`respond.ts`) and the set forms.
 * The property tests hold all of them to the fold.
 */
export function* appendTo(
  context: EndContext,
  record: ExecutionRecord,
  at: number,
  events: readonly ExecutionEvent[],
  effects: Effects = effectsOf({}),
): Tx<ExecutionState> {
  let { state } = record;
  for (const given of events) {
    const event = yield* completed(record, state, given);
    if (event.kind === "finished") effects.unread = event.unread;
    const question = yield* questionOf(record, state, event);
    const next = afterEvent(record.id, state, {
      at,
      event,
      answeredAt: question.answeredAt,
      ordinal: question.ordinal,
      unread: question.unread,
    });
    yield* insertWithEffects(
      {
        id: record.id,
        execution: record.key,
        version: next.version,
        at,
        responses: state.responses,
        ordinal: question.ordinal,
      },
      event,
      effects,
    );
    state = next;
  }
  yield* withdrawDelays(record.key, state.version, effects.withdraw);
  // A finished execution has no waiter left to notify.
  if (state.pending.kind !== "finished")
    state = yield* answerDue(record, state, dueOf(effects), at);
  yield* writeState(record.key, state);
  const last = events.at(-1);
  yield* announceState(record, state);
  if (last?.kind === "finished")
    effects.parent = yield* end(context, record, state.version, at, last);
  return state;
}

/** The event with what only the store knows. */
function* completed(
  record: ExecutionRecord,
  state: ExecutionState,
  event: ExecutionEvent,
): Tx<ExecutionEvent> {
  switch (event.kind) {
    case "continued":
      return yield* markRead(record, state, event);
    case "finished":
      return yield* withUnread(record.key, state.responses, event);
    default:
      return event;
  }
}

function dueOf({ due, withdraw }: Effects): readonly DelayRequested[] {
  return due.filter(({ delay }) => !withdraw.includes(delay));
}

interface Question {
  readonly ordinal: number | undefined;
  readonly answeredAt: number | null;
  readonly unread?: number | undefined;
}

const noQuestion: Question = { ordinal: undefined, answeredAt: null };

/** The place of an event among the questions to its inbox, and the time of its answer, if any. */
function* questionOf(
  { id, key: execution }: ExecutionRecord,
  state: ExecutionState,
  event: ExecutionEvent,
): Tx<Question> {
  switch (event.kind) {
    case "joinNextTried":
    case "joinNext": {
      if (event.kind === "joinNextTried" && !isFound(event)) return noQuestion;
      const ordinal = yield* nextQuestion(execution, event.joinSet);
      const answer = yield* answerTo(execution, event.joinSet, ordinal);
      return { ordinal, answeredAt: answer?.at ?? null };
    }
    case "waiting": {
      const answer = yield* firstAfter(execution, state, event.seen);
      return { ordinal: undefined, answeredAt: answer?.at ?? null };
    }
    case "signalReceived": {
      const next = yield* nextSignal(execution, signalInbox(event.signal));
      if (next?.seq !== event.seq)
        throw eventsInvalid(
          id,
          "response",
          `response ${event.seq} is not the next signal "${event.signal}" that it could take.`,
        );
      return { ordinal: next.ordinal, answeredAt: null };
    }
    case "receiveTimedOut":
      return { ...noQuestion, unread: yield* unreadSignal(execution, state, event) };
    default:
      return noQuestion;
  }
}

function* end(
  context: EndContext,
  record: ExecutionRecord,
  version: number,
  at: number,
  finished: Finished,
): Tx<ToldParent | undefined> {
  // No run waits for the delays any longer. An execution of any role may have requested some.
  yield* run(sql`
    DELETE FROM holdfast_execution_delay WHERE execution = ${record.key}`);
  yield* announce(executionEnded, record.id);
  const parent =
    record.parent === null ? undefined : yield* respondToParent(record, version, at, finished);
  // Last, since executions are locked before processes, and processes before sessions.
  if (record.process !== null)
    yield* endProcessOf(context, record.process, { ...finished, version, at });
  if (record.session !== null) yield* endTurn(context, record.session, record.id, at);
  return parent;
}

/** Inserts an event with its rows in other tables. */
export function* insertWithEffects(
  place: EventPlace & { readonly id: ExecutionId },
  event: ExecutionEvent,
  effects: Effects,
): Tx<void> {
  switch (event.kind) {
    case "delayRequested":
      yield* insertEvent(place, event);
      return yield* requestDelay(place, event, effects.due);
    case "scheduled": {
      const start = effects.starts.shift();
      const outcome = yield* startBeside(place.id, start);
      if (outcome === "created" && start?.lock !== undefined) effects.started.push(start);
      effects.scheduled.push({ version: place.version, outcome });
      return yield* insertEvent(place, { ...event, outcome });
    }
    case "joinNextTried":
    case "joinNext": {
      const isQuestion = place.ordinal !== undefined;
      const inbox = isQuestion ? event.joinSet : undefined;
      return yield* insertEvent({ ...place, inbox }, event);
    }
    case "signalReceived":
      return yield* insertEvent({ ...place, inbox: signalInbox(event.signal) }, event);
    case "continued":
      yield* insertEvent(place, event);
      // They would wake a run that did not ask for them.
      effects.due.length = 0;
      yield* run(sql`
        DELETE FROM holdfast_execution_delay WHERE execution = ${place.execution}`);
      return;
    default:
      return yield* insertEvent(place, event);
  }
}

/**
 * Starts a run beside the execution. A taken id is an outcome for the code that asked: it does not
 * fail the append.
 */
function* startBeside(id: ExecutionId, start: NewChild | undefined): Tx<ScheduledOutcome> {
  if (start === undefined) throw new Error(`Nothing was given that ${id} could start.`);
  const found = yield* createIfFree(null, start, {
    isLocked: start.lock !== undefined,
  });
  if ("refusal" in found) return "conflict";
  return found.existed ? "existed" : "created";
}
