import type { DelayId } from "../../../model/ids/delay-id.ts";
import type { JoinSetId } from "../../../model/ids/join-set-id.ts";
import { afterResponse } from "../../../model/execution/transition.ts";
import type { ExecutionState } from "../../../model/execution/state.ts";
import { integersOf, skipLocked, textsOf } from "../../../sql/dialect.ts";
import { announce, rows, run, storeOperation, type Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { undamaged } from "../../damage.ts";
import { judgedAt, type ExecutionContext } from "../context.ts";
import { announceState } from "../log/respond.ts";
import {
  recordOf,
  stateColumns,
  stateValuesOf,
  writeState,
  type ExecutionRecord,
  type StateRow,
  type StateValues,
} from "../state-row.ts";
import { newResponse } from "../topics.ts";

export interface AnswerDue {
  /** Expired delays. */
  readonly delays: readonly DelayId[];
  readonly at: number;
}

export interface AnsweredDue {
  readonly answered: number;
  /**
   * Delays that remain: another transaction has them locked, or they cannot be answered together
   * with others.
   */
  readonly left: readonly DelayId[];
}

/**
 * Answers many expired delays in a few statements, regardless of their number. All processes find a
 * delay at its instant. The first process locks the executions and removes the rows, and the others
 * find nothing left: on Postgres they skip locked rows, on SQLite they run after it. Rows are
 * locked in the same order as by `answerDelay`, the execution before its delay.
 */
export const answerDueDelays = storeOperation("answerDueDelays", {
  // One call at a time in a process: each takes all the delays that it is given.
  key: () => "timers",
  *one(context: ExecutionContext, { delays, at: askedAt }: AnswerDue): Tx<AnsweredDue> {
    const records = yield* lockedOf(delays);
    const at = judgedAt(context, askedAt);
    const taken = yield* lockedDelays(delays, records);
    if (taken.length === 0) return yield* leftOf(delays);
    const responses = yield* moveToResponses(taken, at);
    yield* wake(records, responses, at);
    if (responses.length === delays.length) return { answered: responses.length, left: [] };
    const answered = new Set<string>(responses.map(({ source }) => source));
    const { left } = yield* leftOf(delays.filter((id) => !answered.has(id)));
    return { answered: responses.length, left };
  },
});

/** The executions of these delays, except ones that another transaction has locked. */
function* lockedOf(delays: readonly DelayId[]): Tx<ReadonlyMap<number, ExecutionRecord>> {
  const found = yield* rows<StateRow>(sql`
    SELECT ${stateColumns} FROM holdfast_execution
    WHERE key IN (SELECT d.execution FROM holdfast_execution_delay d WHERE d.id IN ${textsOf(delays)} AND d.is_paused = 0)
      AND state <> 'finished'
    ORDER BY key DESC ${skipLocked}`);
  const records = new Map<number, ExecutionRecord>();
  for (const state of found) {
    const record = undamaged(() => recordOf(state));
    if (record !== undefined) records.set(state.key, record);
  }
  return records;
}

/** The delays that are unanswered and not paused, locked so that no other call can answer them. */
function* lockedDelays(
  delays: readonly DelayId[],
  records: ReadonlyMap<number, ExecutionRecord>,
): Tx<readonly number[]> {
  if (records.size === 0) return [];
  const found = yield* rows<{
    readonly key: number;
    readonly execution: number;
  }>(sql`
    SELECT key, execution FROM holdfast_execution_delay
    WHERE id IN ${textsOf(delays)} AND is_paused = 0 ${skipLocked}`);
  return found.flatMap(({ key, execution }) => (records.has(execution) ? key : []));
}

interface Response {
  readonly execution: number;
  readonly seq: number;
  readonly inbox: JoinSetId;
  readonly ordinal: number;
  readonly source: DelayId;
}

/** Moves the delays to responses, numbered in the order of expiry, as if answered one by one. */
function* moveToResponses(delays: readonly number[], at: number): Tx<readonly Response[]> {
  const responses = yield* rows<Response>(sql`
    INSERT INTO holdfast_execution_response (execution, seq, at, kind, inbox, ordinal, source, outcome)
    SELECT d.execution,
      x.responses + row_number() OVER (PARTITION BY d.execution ORDER BY d.expires_at, d.id),
      CAST(${at} AS BIGINT), 'delay', d.inbox,
      COALESCE((SELECT r.ordinal FROM holdfast_execution_response r
        WHERE r.execution = d.execution AND r.inbox = d.inbox ORDER BY r.ordinal DESC LIMIT 1), 0)
      + row_number() OVER (PARTITION BY d.execution, d.inbox ORDER BY d.expires_at, d.id),
      d.id, 'expired'
    FROM holdfast_execution_delay d JOIN holdfast_execution x ON x.key = d.execution
    WHERE d.key IN ${integersOf(delays)}
      AND NOT EXISTS (SELECT 1 FROM holdfast_execution_response r WHERE r.execution = d.execution AND r.source = d.id)
    RETURNING execution, seq, inbox, ordinal, source`);
  yield* run(sql`
    DELETE FROM holdfast_execution_delay WHERE id IN ${textsOf(responses.map(({ source }) => source))}`);
  return responses;
}

/** Counts the responses of each execution, and makes the executions that waited for one due. */
function* wake(
  records: ReadonlyMap<number, ExecutionRecord>,
  responses: readonly Response[],
  at: number,
): Tx<void> {
  const states = new Map<number, ExecutionState>();
  const inOrder = responses.toSorted((a, b) => a.seq - b.seq);
  for (const { execution, inbox, ordinal } of inOrder) {
    const state = states.get(execution) ?? records.get(execution)?.state;
    if (state === undefined) continue;
    const arriving = { at, joinSet: inbox, ordinal };
    states.set(execution, afterResponse(state, arriving));
  }
  yield* writeAlike(records, states);
  for (const [key, state] of states) {
    const record = records.get(key);
    if (record === undefined) continue;
    if (state.pending !== record.state.pending) yield* announceState(record, state);
    yield* announce(newResponse, record.id);
  }
}

/** The columns that a response may change, besides the count. */
const wakingColumns: readonly (keyof StateValues)[] = [
  "state",
  "due_at",
  "lease_until",
  "inbox",
  "ordinal",
  "is_closing",
  "seen",
  "wake_at",
  "responses",
];

/** One statement for all rows with the same change, which most sleepers have. */
function* writeAlike(
  records: ReadonlyMap<number, ExecutionRecord>,
  states: ReadonlyMap<number, ExecutionState>,
): Tx<void> {
  const alike = new Map<string, { keys: number[]; to: StateValues }>();
  for (const [key, state] of states) {
    const record = records.get(key);
    if (record === undefined) continue;
    const before = stateValuesOf(record.state);
    const after = stateValuesOf(state);
    const isWaking = Object.entries(after).every(
      ([column, value]) =>
        before[column as keyof StateValues] === value ||
        wakingColumns.includes(column as keyof StateValues),
    );
    if (!isWaking) {
      yield* writeState(key, state);
      continue;
    }
    const to = { ...after, responses: after.responses - before.responses };
    const name = JSON.stringify(wakingColumns.map((column) => to[column]));
    const group = alike.get(name) ?? { keys: [], to };
    group.keys.push(key);
    alike.set(name, group);
  }
  for (const { keys, to } of alike.values())
    yield* run(sql`
      UPDATE holdfast_execution SET
        state = ${to.state}, due_at = ${to.due_at}, lease_until = ${to.lease_until}, inbox = ${to.inbox},
        ordinal = ${to.ordinal}, is_closing = ${to.is_closing}, seen = ${to.seen}, wake_at = ${to.wake_at},
        responses = responses + ${to.responses}
      WHERE key IN ${integersOf(keys)}`);
}

/** The delays that still exist and are not paused. */
function* leftOf(delays: readonly DelayId[]): Tx<AnsweredDue> {
  const found = yield* rows<{ readonly id: DelayId }>(sql`
    SELECT id FROM holdfast_execution_delay
    WHERE id IN ${textsOf(delays)} AND is_paused = 0 ORDER BY expires_at, id`);
  return { answered: 0, left: found.map(({ id }) => id) };
}
