import { row } from "../../../sql/operation.ts";
import type { Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";

/**
 * An inbox is where responses of one kind gather: a join set, under its id, or
 * a signal, under its name. The n-th question to an inbox meets its n-th
 * response.
 */

/** No join set begins like this: their kinds are o, n and g. */
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

/** The response that a question to an inbox meets, if it has come. */
export function* answerTo(
  execution: number,
  inbox: string,
  ordinal: number,
): Tx<{ readonly seq: number; readonly at: number } | undefined> {
  return yield* row<{ readonly seq: number; readonly at: number }>(sql`
    SELECT seq, at FROM holdfast_execution_response
    WHERE execution = ${execution} AND inbox = ${inbox} AND ordinal = ${ordinal}`);
}

/** The place of the next response to an inbox, from 1 on. */
export function* nextAnswer(execution: number, inbox: string): Tx<number> {
  const last = yield* row<{ readonly ordinal: number }>(sql`
    SELECT ordinal FROM holdfast_execution_response
    WHERE execution = ${execution} AND inbox = ${inbox}
    ORDER BY ordinal DESC LIMIT 1`);
  return (last?.ordinal ?? 0) + 1;
}
