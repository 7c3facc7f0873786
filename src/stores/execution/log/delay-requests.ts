import { HoldfastError } from "../../../model/errors.ts";
import type { ExecutionEvent } from "../../../model/execution/event.ts";
import type { ExecutionState } from "../../../model/execution/state.ts";
import { splitDelayId, type DelayId } from "../../../model/ids/delay-id.ts";
import type { ExecutionId } from "../../../model/ids/execution-id.ts";
import { memberText } from "../../../model/ids/join-set-member.ts";
import { textsOf } from "../../../sql/dialect.ts";
import { announce, row, run, type Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import type { ExecutionRecord } from "../state-row.ts";
import { newResponse, timerSet } from "../topics.ts";
import { delayResponse, insertResponse } from "./respond.ts";

/** The delays that an append requests and withdraws. */

export type DelayRequested = Extract<ExecutionEvent, { readonly kind: "delayRequested" }>;

/** True for a delay that has expired when it is requested: its answer comes with the request. */
export function isDueAt(event: ExecutionEvent, at: number): boolean {
  return event.kind === "delayRequested" && event.expiresAt <= at;
}

/**
 * Requests a delay. An expired one is added to `due`, to be answered after the other events are
 * written. A delay's id is used once: it stays taken while the delay is open and after it was
 * answered.
 * @throws HoldfastError `DELAY_EXISTS`
 */
export function* requestDelay(
  place: {
    readonly id: ExecutionId;
    readonly execution: number;
    readonly at: number;
  },
  event: DelayRequested,
  due: DelayRequested[],
): Tx<void> {
  const { id, execution, at } = place;
  const { delay, joinSet, expiresAt } = event;
  const isAsked = due.some((other) => other.delay === delay);
  if (isAsked || (yield* isAnswered(execution, delay))) throw delayExists(id, delay);
  if (isDueAt(event, at)) {
    if (yield* isOpen(delay)) throw delayExists(id, delay);
    due.push(event);
    return;
  }
  const inserted = yield* row<{ readonly key: number }>(sql`
    INSERT INTO holdfast_execution_delay (id, execution, inbox, expires_at, is_paused)
    VALUES (${delay}, ${execution}, ${joinSet}, ${expiresAt}, 0)
    ON CONFLICT (id) DO NOTHING RETURNING key`);
  if (inserted === undefined) throw delayExists(id, delay);
  yield* announce(timerSet, id);
}

function* isAnswered(execution: number, delay: DelayId): Tx<boolean> {
  const found = yield* row(sql`
    SELECT seq FROM holdfast_execution_response WHERE execution = ${execution} AND source = ${delay}`);
  return found !== undefined;
}

function* isOpen(delay: DelayId): Tx<boolean> {
  const found = yield* row(sql`
    SELECT key FROM holdfast_execution_delay WHERE id = ${delay}`);
  return found !== undefined;
}

function delayExists(id: ExecutionId, delay: DelayId): HoldfastError {
  return new HoldfastError(
    "DELAY_EXISTS",
    `Run ${id} has already requested delay ${delay}; nothing was written. Number the delays of a join set 1, 2, 3, ….`,
    { id, delay },
  );
}

/**
 * Answers the expired delays, earliest first, equal ones by their calls. Returns the state after
 * that.
 */
export function* answerDue(
  { id, key }: ExecutionRecord,
  state: ExecutionState,
  due: readonly DelayRequested[],
  at: number,
): Tx<ExecutionState> {
  if (due.length === 0) return state;
  const inOrder = due.toSorted((a, b) => a.expiresAt - b.expiresAt || a.call - b.call);
  let next = state;
  for (const { delay } of inOrder)
    next = yield* insertResponse(key, next, delayResponse(delay, "expired", at));
  yield* announce(newResponse, id);
  return next;
}

/**
 * Withdraws open delays without a notification. The last event of the append records it. A copy
 * of the run therefore does not request them again, and a repeated call differs from another append.
 */
export function* withdrawDelays(
  execution: number,
  lastVersion: number,
  delays: readonly DelayId[],
): Tx<void> {
  if (delays.length === 0) return;
  yield* run(sql`
    DELETE FROM holdfast_execution_delay WHERE execution = ${execution} AND id IN ${textsOf(delays)}`);
  yield* run(sql`
    UPDATE holdfast_execution_event SET withdrawn = ${withdrawnText(delays)}
    WHERE execution = ${execution} AND version = ${lastVersion}`);
}

/**
 * The stored form of withdrawn delays: by set and index, each once, which a copy of the execution
 * shares. Null for none.
 */
export function withdrawnText(delays: readonly DelayId[]): string | null {
  if (delays.length === 0) return null;
  const members = delays.map((delay) => {
    const { joinSet, index } = splitDelayId(delay);
    return memberText(joinSet, index);
  });
  return JSON.stringify([...new Set(members)].toSorted());
}
