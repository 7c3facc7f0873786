import type { Encoded } from "../../../model/values/encoded.ts";
import { HoldfastError } from "../../../model/errors.ts";
import type { DelayOutcome } from "../../../model/execution/event.ts";
import { splitDelayId, type DelayId } from "../../../model/ids/delay-id.ts";
import { splitToParts, type ExecutionId } from "../../../model/ids/execution-id.ts";
import type { JoinSetId } from "../../../model/ids/join-set-id.ts";
import type { ExecutionState, PendingState } from "../../../model/execution/state.ts";
import { afterResponse } from "../../../model/execution/transition.ts";
import { announce, row, run, type Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import type { Finished } from "../context.ts";
import { lockedParent, writeState, type ExecutionRecord } from "../state-row.ts";
import {
  cancellationMarked,
  newResponse,
  pendingWork,
  placeFreed,
  runInterrupted,
  timerSet,
} from "../topics.ts";

/**
 * An inbox gathers responses of one kind: for a join set, under its id, or for a signal, under its
 * name. The n-th question to an inbox meets its n-th response.
 */

/** The inbox of a signal. No join set begins like this: their kinds are o, n and g. */
export function signalInbox(signal: string): string {
  return `s:${signal}`;
}

/** The place of the next question to an inbox, from 1 on. */
export function* nextQuestion(execution: number, inbox: string): Tx<number> {
  const last = yield* row<{ readonly ordinal: number }>(sql`
    SELECT ordinal FROM holdfast_execution_event
    WHERE execution = ${execution} AND inbox = ${inbox} AND ordinal IS NOT NULL
    ORDER BY ordinal DESC LIMIT 1`);
  return (last?.ordinal ?? 0) + 1;
}

/** The response to a question of an inbox, if it has arrived. */
export function* answerTo(
  execution: number,
  inbox: string,
  ordinal: number,
): Tx<{ readonly seq: number; readonly at: number } | undefined> {
  return yield* row<{ readonly seq: number; readonly at: number }>(sql`
    SELECT seq, at FROM holdfast_execution_response
    WHERE execution = ${execution} AND inbox = ${inbox} AND ordinal = ${ordinal}`);
}

/**
 * The next signal of an inbox that can be taken: after the last one taken, skipping signals that
 * earlier runs have read.
 */
export function* nextSignal(
  execution: number,
  inbox: string,
): Tx<{ readonly seq: number; readonly ordinal: number } | undefined> {
  const next = yield* nextQuestion(execution, inbox);
  return yield* row<{ readonly seq: number; readonly ordinal: number }>(sql`
    SELECT seq, ordinal FROM holdfast_execution_response
    WHERE execution = ${execution} AND inbox = ${inbox} AND ordinal >= ${next} AND read_by IS NULL
    ORDER BY ordinal LIMIT 1`);
}

/**
 * The first signal of a name after a number that no call has taken and no earlier run has read.
 * The unread ones are few; by its name, every signal of the run would be passed.
 */
export function* unreadSignal(
  execution: number,
  { responses }: Pick<ExecutionState, "responses">,
  { signal, seen }: { readonly signal: string; readonly seen: number },
): Tx<number | undefined> {
  if (responses <= seen) return undefined;
  const inbox = signalInbox(signal);
  const next = yield* nextQuestion(execution, inbox);
  const unread = yield* row<{ readonly seq: number }>(sql`
    SELECT seq FROM holdfast_execution_response
    WHERE execution = ${execution} AND kind = 'signal' AND read_by IS NULL AND seq > ${seen}
      AND inbox || '' = ${inbox} AND ordinal >= ${next}
    ORDER BY seq LIMIT 1`);
  return unread?.seq;
}

/**
 * The first response after a number that is new to the current run. This is a signal that no
 * earlier run has read, or a response to its own sets, which their names show. Earlier signals were
 * left unread for it.
 */
export function* firstAfter(
  execution: number,
  { responses, responsesFrom, continuations }: ExecutionState,
  seen: number,
): Tx<{ readonly at: number } | undefined> {
  if (responses <= seen) return undefined;
  if (seen < responsesFrom) {
    const left = yield* row<{ readonly at: number }>(sql`
      SELECT at FROM holdfast_execution_response
      WHERE execution = ${execution} AND kind = 'signal' AND read_by IS NULL
        AND seq > ${seen} AND seq <= ${responsesFrom} ORDER BY seq LIMIT 1`);
    if (left !== undefined) return left;
  }
  const number = `${continuations}:`;
  const isOfRun =
    continuations === 0
      ? sql`1 = 1`
      : sql`(kind = 'signal' OR substr(inbox, 2, ${number.length}) = ${number})`;
  return yield* row<{ readonly at: number }>(sql`
    SELECT at FROM holdfast_execution_response
    WHERE execution = ${execution} AND seq > ${Math.max(seen, responsesFrom)} AND ${isOfRun}
    ORDER BY seq LIMIT 1`);
}

/** The place of the next response to an inbox, from 1 on. */
function* nextAnswer(execution: number, inbox: string): Tx<number> {
  const last = yield* row<{ readonly ordinal: number }>(sql`
    SELECT ordinal FROM holdfast_execution_response
    WHERE execution = ${execution} AND inbox = ${inbox}
    ORDER BY ordinal DESC LIMIT 1`);
  return (last?.ordinal ?? 0) + 1;
}

/** The same where signals taken by name may have been pruned: no place is assigned twice. */
function* nextSignalPlace(
  execution: number,
  { continuations }: ExecutionState,
  inbox: string,
): Tx<number> {
  const next = yield* nextAnswer(execution, inbox);
  return continuations === 0 ? next : Math.max(next, yield* nextQuestion(execution, inbox));
}

/**
 * A response to deliver. `source` identifies the child, the delay or the signal's key that it
 * answers for.
 */
export interface NewResponse {
  readonly at: number;
  readonly kind: "child" | "delay" | "signal";
  readonly inbox: string;
  readonly source: string;
  readonly outcome: string;
  readonly child: number | null;
  readonly finishedVersion: number | null;
  readonly valueHash: string | null;
  readonly payload: Encoded | null;
}

/** The earlier response from the same source. */
export interface EarlierResponse {
  readonly seq: number;
  readonly outcome: string;
  readonly value_hash: string | null;
}

/**
 * Adds a response to an execution whose record the transaction has locked, and unblocks it if it
 * waited for this one. Returns the number of the new or the existing response.
 */
export function* addResponse(
  record: ExecutionRecord,
  response: NewResponse,
): Tx<{ readonly seq: number; readonly earlier?: EarlierResponse }> {
  const { key, id, state } = record;
  const earlier = yield* earlierResponse(key, response.source);
  if (earlier !== undefined) return { seq: earlier.seq, earlier };
  const next = yield* insertResponse(key, state, response);
  const seq = next.responses;
  if (next.pending === state.pending)
    yield* run(sql`
      UPDATE holdfast_execution SET responses = ${seq} WHERE key = ${key}`);
  else {
    yield* writeState(key, next);
    yield* announceState(record, next);
  }
  yield* announce(newResponse, id);
  return { seq };
}

/**
 * Inserts a response whose source has not answered yet. Returns the next state, which the caller
 * must write.
 */
export function* insertResponse(
  key: number,
  state: ExecutionState,
  response: NewResponse,
): Tx<ExecutionState> {
  const { at, kind, inbox, source, outcome } = response;
  const ordinal =
    kind === "signal" ? yield* nextSignalPlace(key, state, inbox) : yield* nextAnswer(key, inbox);
  const joinSet = kind === "signal" ? null : (inbox as JoinSetId);
  const next = afterResponse(state, { at, joinSet, ordinal });
  yield* run(sql`
    INSERT INTO holdfast_execution_response
      (execution, seq, at, kind, inbox, ordinal, source, outcome, child, finished_version, value_hash, payload)
    VALUES (${key}, ${next.responses}, ${at}, ${kind}, ${inbox}, ${ordinal}, ${source}, ${outcome}, ${response.child},
      ${response.finishedVersion}, ${response.valueHash}, ${response.payload})`);
  return next;
}

/** The answer of a delay: it expired or was cancelled. */
export function delayResponse(delay: DelayId, outcome: DelayOutcome, at: number): NewResponse {
  return {
    at,
    kind: "delay",
    inbox: splitDelayId(delay).joinSet,
    source: delay,
    outcome,
    child: null,
    finishedVersion: null,
    valueHash: null,
    payload: null,
  };
}

export function* earlierResponse(
  execution: number,
  source: string,
): Tx<EarlierResponse | undefined> {
  return yield* row<EarlierResponse>(sql`
    SELECT seq, outcome, value_hash FROM holdfast_execution_response
    WHERE execution = ${execution} AND source = ${source}`);
}

/**
 * Delivers the end of a child. Returns the notified parent and the number of the response there.
 * The result stays in the child's log.
 * @throws HoldfastError `RESPONSE_CONFLICT` when the parent was given another result before.
 */
export function* respondToParent(
  child: ExecutionRecord,
  finishedVersion: number,
  at: number,
  finished: Finished,
): Tx<{ readonly id: ExecutionId; readonly seq: number } | undefined> {
  const parts = splitToParts(child.id);
  if (parts === undefined) return undefined;
  const parent = yield* lockedParent(parts.parent, child.id);
  const { seq, earlier } = yield* addResponse(parent, {
    at,
    kind: "child",
    inbox: parts.joinSet,
    source: child.id,
    outcome: finished.resultKind,
    child: child.key,
    finishedVersion,
    valueHash: finished.resultHash,
    payload: null,
  });
  if (earlier === undefined || earlier.value_hash === finished.resultHash)
    return { id: parent.id, seq };
  throw new HoldfastError(
    "RESPONSE_CONFLICT",
    `Run ${parent.id} already has another answer from ${child.id}, which stays; nothing was written. ` +
      "A child of the same id must have been removed and created again: number the children of a join set 1, 2, 3, …, each once.",
    { id: parent.id, child: child.id },
  );
}

/**
 * Announces a change of state: to workers that a run can be locked or a place is free, to sleepers
 * that a time was set. The run's worker is notified that it must stop or may resume. `state` is the
 * previous one; a new execution has none.
 */
export function* announceState(
  {
    id,
    function: name,
    state: before,
  }: Pick<ExecutionRecord, "id" | "function"> & {
    readonly state?: ExecutionState;
  },
  { pending, lifecycle, incompatible }: ExecutionState,
): Tx<void> {
  // A parked run is available to other versions of its code.
  const isRunnable = lifecycle === "parked" ? incompatible.length > 0 : lifecycle !== "paused";
  if (pending.kind === "pending" && isRunnable) yield* announce(pendingWork, name);
  else if (before !== undefined && isLetGo(before.pending, pending))
    yield* announce(placeFreed, name);
  const isInterrupted = before !== undefined && before.lifecycle !== lifecycle;
  // An end has an announcement of its own.
  if (isInterrupted && pending.kind !== "finished") {
    yield* announce(runInterrupted, id);
    if (lifecycle === "cancelling") yield* announce(cancellationMarked, name);
  }
  if (pending.kind === "locked") yield* announce(timerSet, id);
}

/** True if it counted against a limit and no longer does. */
function isLetGo(before: PendingState, after: PendingState): boolean {
  return before.kind === "locked" && after.kind !== "locked";
}
