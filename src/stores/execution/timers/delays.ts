import { parseDelayId, splitDelayId, type DelayId } from "../../../model/ids/delay-id.ts";
import { HoldfastError } from "../../../model/errors.ts";
import type { DelayOutcome } from "../../../model/execution/event.ts";
import type { WaitOptions } from "../../../sql/database.ts";
import { lockRow } from "../../../sql/dialect.ts";
import { announce, row, run, storeOperation, type Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { onlyWait, type Call } from "../../method.ts";
import { judgedAt, type ExecutionContext } from "../context.ts";
import { addResponse, delayResponse, earlierResponse } from "../log/respond.ts";
import { lockedRecord } from "../state-row.ts";
import { timerSet } from "../topics.ts";

/**
 * A delay is a row until it is answered: by its expiry (`expire.ts`) or by a cancellation. The
 * first transaction to remove the row decides. Pausing sets `is_paused`, which takes the row out of
 * the index of the next timers. The row keeps its instant, so a delay that expired in the meantime
 * is answered as soon as it is unpaused. An expiry found before the pause sees the mark under the
 * lock.
 */

export interface AnswerDelay {
  readonly delay: DelayId;
  readonly at: number;
  readonly outcome: DelayOutcome;
}

export function givenCancelDelay(
  { clock }: ExecutionContext,
  delay: string,
  wait?: WaitOptions,
): Call<AnswerDelay> {
  const input = {
    delay: parseDelayId(delay),
    at: clock.now(),
    outcome: "cancelled",
  } as const;
  return { input, wait: onlyWait(wait) };
}

/**
 * `answered` by this call, or already answered by its expiry or a cancellation, or not expired
 * because it is paused.
 */
export type AnswerDelayOutcome = "answered" | "alreadyExpired" | "alreadyCancelled" | "notExpired";

/**
 * Answers an open delay: it expired or was cancelled. The first call decides; a later one learns
 * the outcome.
 * @throws HoldfastError `DELAY_NOT_FOUND` when it was never requested.
 */
export const answerDelay = storeOperation("answerDelay", {
  key: (input) => splitDelayId(input.delay).execution,
  *one(
    context: ExecutionContext,
    { delay, at: askedAt, outcome }: AnswerDelay,
  ): Tx<AnswerDelayOutcome> {
    const { execution } = splitDelayId(delay);
    const record = yield* lockedRecord(execution);
    const at = judgedAt(context, askedAt);
    // An expiry may have been found before the pause.
    const removed = yield* run(sql`
      DELETE FROM holdfast_execution_delay
      WHERE id = ${delay} AND (is_paused = 0 OR ${outcome} = 'cancelled')`);
    if (removed === 0) {
      const earlier = yield* earlierResponse(record.key, delay);
      if (earlier === undefined) return yield* pausedDelay(delay);
      return earlier.outcome === "cancelled" ? "alreadyCancelled" : "alreadyExpired";
    }
    yield* addResponse(record, delayResponse(delay, outcome, at));
    return "answered";
  },
});

/** @throws HoldfastError `DELAY_NOT_FOUND` */
function* pausedDelay(delay: DelayId): Tx<"notExpired"> {
  const found = yield* row(sql`
    SELECT id FROM holdfast_execution_delay WHERE id = ${delay}`);
  if (found === undefined) throw delayNotFound(delay);
  return "notExpired";
}

export interface PauseDelay {
  readonly delay: DelayId;
  readonly isPaused: boolean;
}

export function givenPauseDelay(
  _: ExecutionContext,
  delay: string,
  wait?: WaitOptions,
): Call<PauseDelay> {
  const input = { delay: parseDelayId(delay), isPaused: true };
  return { input, wait: onlyWait(wait) };
}

export function givenUnpauseDelay(
  _: ExecutionContext,
  delay: string,
  wait?: WaitOptions,
): Call<PauseDelay> {
  const input = { delay: parseDelayId(delay), isPaused: false };
  return { input, wait: onlyWait(wait) };
}

/** Pauses the expiry of a delay, or resumes it. May be repeated. @throws HoldfastError `DELAY_NOT_FOUND` */
export const pauseDelay = storeOperation("pauseDelay", {
  key: (input) => splitDelayId(input.delay).execution,
  *one(_: ExecutionContext, { delay, isPaused }: PauseDelay): Tx<void> {
    const found = yield* row<{ readonly is_paused: number }>(sql`
      SELECT is_paused FROM holdfast_execution_delay WHERE id = ${delay} ${lockRow}`);
    if (found === undefined) throw delayNotFound(delay);
    if (found.is_paused === Number(isPaused)) return;
    yield* run(sql`
      UPDATE holdfast_execution_delay SET is_paused = ${Number(isPaused)} WHERE id = ${delay}`);
    yield* announce(timerSet, splitDelayId(delay).execution);
  },
});

function delayNotFound(delay: DelayId): HoldfastError {
  return new HoldfastError(
    "DELAY_NOT_FOUND",
    `Delay ${delay} is not open. Check the id; its run may have ended.`,
    { delay },
  );
}
