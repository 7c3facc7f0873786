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
import type { Finished } from "../context.ts";
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
} from "./respond.ts";

/** What became of a run that an event was to start. */
export interface Scheduled {
  /** Of the event. */
  readonly version: number;
  readonly outcome: ScheduledOutcome;
}

/** A parent that was told of the end, and the number of that response there. */
export interface ToldParent {
  readonly id: ExecutionId;
  readonly seq: number;
}

export interface AppendOutcome {
  /** The version the next event gets; of a finished execution the last one's. */
  readonly nextVersion: number;
  /** The instant that was recorded. */
  readonly at: number;
  /** How many responses there are, when the events end with a wait that has not seen them all. */
  readonly responses?: number;
  /** The parent that was told of the end; missing when there was none to tell. */
  readonly parent?: ToldParent;
  /** What became of each run that a "scheduled" was to start; missing when there was none. */
  readonly scheduled?: readonly Scheduled[];
  /** Those of the children that were created locked; missing when none was. */
  readonly lockedChildren?: readonly LockedExecution[];
}

export function appended(
  nextVersion: number,
  at: number,
  { scheduled, parent, locked }: Pick<Effects, "scheduled" | "parent" | "locked">,
): AppendOutcome {
  return {
    nextVersion,
    at,
    ...(parent !== undefined && { parent }),
    ...(scheduled.length > 0 && { scheduled }),
    ...(locked.length > 0 && { lockedChildren: locked }),
  };
}

/** What the events of an append bring about besides the log, gathered while they are written. */
export interface Effects {
  /** What is still to be started, in the order of the events that do. */
  readonly starts: NewChild[];
  readonly scheduled: Scheduled[];
  /** What was started and is to be locked. */
  readonly started: NewChild[];
  readonly locked: LockedExecution[];
  parent: ToldParent | undefined;
  /** Delays that are over, to be answered when all events are written. */
  readonly due: DelayRequested[];
  /** Delays that are taken back then. */
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
    due: [],
    withdraw,
  };
}

/**
 * Appends events to an execution whose record the transaction has locked,
 * moves its state, answers its parent when they end it, and tells those who
 * wait for it. The one way to change an execution, but for shortcuts that write
 * the same in fewer statements: quiet appends (`append.ts`), the locks of
 * `lockPending`, responses (`respond.ts`) and the set forms; the property tests
 * hold all of them to the fold.
 */
export function* appendTo(
  record: ExecutionRecord,
  at: number,
  events: readonly ExecutionEvent[],
  effects: Effects = effectsOf({}),
): Tx<ExecutionState> {
  let { state } = record;
  for (const given of events) {
    const event = given.kind === "continued" ? yield* markRead(record, state, given) : given;
    const question = yield* questionOf(record, state, event);
    const next = afterEvent(record.id, state, {
      at,
      event,
      answeredAt: question.answeredAt,
      ordinal: question.ordinal,
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
  // Nobody is left to be told of them when it has ended.
  if (state.pending.kind !== "finished")
    state = yield* answerDue(record, state, dueOf(effects), at);
  yield* writeState(record.key, state);
  const last = events.at(-1);
  yield* announceState(record, state);
  if (last?.kind === "finished") effects.parent = yield* end(record, state.version, at, last);
  return state;
}

function dueOf({ due, withdraw }: Effects): readonly DelayRequested[] {
  return due.filter(({ delay }) => !withdraw.includes(delay));
}

interface Question {
  readonly ordinal: number | undefined;
  readonly answeredAt: number | null;
}

const noQuestion: Question = { ordinal: undefined, answeredAt: null };

/** The place of an event among the questions to its inbox, and when it was answered, if it was. */
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
    default:
      return noQuestion;
  }
}

function* end(
  record: ExecutionRecord,
  version: number,
  at: number,
  finished: Finished,
): Tx<ToldParent | undefined> {
  // Nobody is left to wait for them, whatever its role: any may have asked for some.
  yield* run(sql`
    DELETE FROM holdfast_execution_delay WHERE execution = ${record.key}`);
  yield* announce(executionEnded, record.id);
  const parent =
    record.parent === null ? undefined : yield* respondToParent(record, version, at, finished);
  // Last, since executions are locked before processes, and those before sessions.
  if (record.process !== null) yield* endProcessOf(record.process, { ...finished, version, at });
  return parent;
}

/** Inserts an event, with the rows in other tables that it stands for. */
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

/** A taken id is an answer to the code that asked: it does not fail the append. */
function* startBeside(id: ExecutionId, start: NewChild | undefined): Tx<ScheduledOutcome> {
  if (start === undefined) throw new Error(`Nothing was given that ${id} could start.`);
  const found = yield* createIfFree(null, start, {
    isLocked: start.lock !== undefined,
  });
  if ("refusal" in found) return "conflict";
  return found.existed ? "existed" : "created";
}
