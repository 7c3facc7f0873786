import type { Encoded } from "../../../model/encoded.ts";
import { HoldfastError } from "../../../model/errors.ts";
import type { ExecutionEvent } from "../../../model/execution-event.ts";
import { splitToParts } from "../../../model/execution-id.ts";
import { afterResponse } from "../../../model/execution-transition.ts";
import { announce, row, run } from "../../../sql/operation.ts";
import type { Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { announceState } from "./announce-state.ts";
import { nextAnswer } from "./inbox.ts";
import { lockedParent, writeState } from "../state-row.ts";
import type { ExecutionRecord } from "../state-row.ts";
import { newResponse } from "../topics.ts";

/** A response on its way. `source` is what it answers for: a child, a delay or a signal's key. */
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

/** The response that was there before under the same source. */
export interface EarlierResponse {
  readonly seq: number;
  readonly outcome: string;
  readonly value_hash: string | null;
}

/**
 * Adds a response to an execution whose record the transaction has locked,
 * and unblocks it when it waited for this. Answers with its number, or with
 * the one that was there before.
 */
export function* addResponse(
  record: ExecutionRecord,
  response: NewResponse,
): Tx<{ readonly seq: number; readonly earlier?: EarlierResponse }> {
  const { key, id, state } = record;
  const { at, kind, inbox, source } = response;
  const earlier = yield* earlierResponse(key, source);
  if (earlier !== undefined) return { seq: earlier.seq, earlier };
  const seq = state.responses + 1;
  const ordinal = yield* nextAnswer(key, inbox);
  yield* run(sql`
    INSERT INTO holdfast_execution_response
      (execution, seq, at, kind, inbox, ordinal, source, outcome, child, finished_version, value_hash, payload)
    VALUES (${key}, ${seq}, ${at}, ${kind}, ${inbox}, ${ordinal}, ${source}, ${response.outcome}, ${response.child},
      ${response.finishedVersion}, ${response.valueHash}, ${response.payload})`);
  const next = afterResponse(state, {
    at,
    joinSet: kind === "signal" ? null : inbox,
    ordinal,
  });
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

export function* earlierResponse(
  execution: number,
  source: string,
): Tx<EarlierResponse | undefined> {
  return yield* row<EarlierResponse>(sql`
    SELECT seq, outcome, value_hash FROM holdfast_execution_response
    WHERE execution = ${execution} AND source = ${source}`);
}

/**
 * Delivers the end of a child. The result stays in the child's log.
 *
 * @throws HoldfastError `RESPONSE_CONFLICT` when the parent was given another result before.
 */
export function* respondToParent(
  child: ExecutionRecord,
  finishedVersion: number,
  at: number,
  finished: Extract<ExecutionEvent, { readonly kind: "finished" }>,
): Tx<void> {
  const parts = splitToParts(child.id);
  if (parts === undefined) return;
  const parent = yield* lockedParent(parts.parent, child.id);
  const { earlier } = yield* addResponse(parent, {
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
    return;
  throw new HoldfastError(
    "RESPONSE_CONFLICT",
    `Execution ${parent.id} has had another answer of ${child.id} already, which stays; nothing was written. ` +
      "A child of the same id must have been removed and created again: number the children of a join set from 1 up, each once.",
    { id: parent.id, child: child.id },
  );
}
