import { HoldfastError } from "../../../model/errors.ts";
import type { ResultKind } from "../../../model/execution/event.ts";
import {
  isFailureOfStep,
  isKeptOnRetry,
  isOutcomeOfStep,
} from "../../../model/execution/fork-point.ts";
import { row, rows } from "../../../sql/operation.ts";
import type { Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { lastSeen } from "./fork-copy.ts";
import { outcomeIn } from "../event-row.ts";
import type { ExecutionRecord } from "../state-row.ts";

/** The last event that a copy gets. @throws HoldfastError `FORK_POINT_INVALID` or `NOT_FAILED` */
export function* forkVersion(
  record: ExecutionRecord,
  version: number | undefined,
  prunedBefore: number,
): Tx<number> {
  const { id, state } = record;
  const { pending } = state;
  if (state.role === "external")
    throw new HoldfastError(
      "FORK_POINT_INVALID",
      `Run ${id} is resolved from outside, so there is nothing to copy. Create another one.`,
      { id },
    );
  const last = pending.kind === "finished" ? state.version - 1 : state.version;
  if (version === undefined) {
    if (pending.kind !== "finished" || pending.resultKind === "completed")
      throw new HoldfastError(
        "NOT_FAILED",
        `Run ${id} has not failed, so there is nothing to retry. Fork it at a version instead.`,
        { id },
      );
    return yield* retryPoint(record, last, pending.resultKind);
  }
  if (version > 0 && version < prunedBefore)
    throw new HoldfastError(
      "FORK_POINT_INVALID",
      `The history of run ${id} before version ${prunedBefore} was pruned; got ${version}. Fork it at that version or later, or at its creation.`,
      { id, version, prunedBefore },
    );
  if (Number.isSafeInteger(version) && version >= 0 && version <= last) return version;
  throw new HoldfastError(
    "FORK_POINT_INVALID",
    `Run ${id} can be forked at versions 0 to ${last}; got ${version}.`,
    { id, version, last },
  );
}

/**
 * The last event that a retried run may keep. All failures may lie before it: a child's failure
 * that the run had seen before it recorded something else. A copy would then fail in the same way.
 * In that case the last event before the run saw the newest of those failures is used.
 */
function* retryPoint(
  { key, state }: ExecutionRecord,
  last: number,
  resultKind: ResultKind,
): Tx<number> {
  const { historyFrom, responsesFrom } = state;
  const cleanup = yield* firstOfCleanup(key, historyFrom);
  const point = yield* lastKept(key, historyFrom, (cleanup ?? last + 1) - 1);
  if (cleanup !== undefined || resultKind !== "failed" || point.isBeforeFailure)
    return point.version;
  const newest = yield* row<{
    readonly seq: number;
    readonly inbox: string;
    readonly ordinal: number;
  }>(sql`
    SELECT seq, inbox, ordinal FROM holdfast_execution_response
    WHERE execution = ${key} AND seq > ${responsesFrom} AND kind = 'child' AND outcome <> 'completed'
    ORDER BY seq DESC LIMIT 1`);
  if (newest === undefined) return point.version;
  // An unseen failure is not copied, so its child runs again anyway.
  if (newest.seq > (yield* lastSeen(key, state, point.version))) return point.version;
  const known = yield* row<{ readonly version: number | null }>(sql`
    SELECT MIN(version) AS version FROM holdfast_execution_event
    WHERE execution = ${key} AND version > ${historyFrom}
      AND (seen >= ${newest.seq} OR (inbox = ${newest.inbox} AND ordinal = ${newest.ordinal}))`);
  const before = (known?.version ?? point.version) - 1;
  return (yield* lastKept(key, historyFrom, before)).version;
}

/**
 * The first event of the cleanup after a cancellation was delivered: from here on the run only
 * cleaned up. A retried run is not being cancelled.
 */
function* firstOfCleanup(execution: number, start: number): Tx<number | undefined> {
  const found = yield* row<{ readonly version: number | null }>(sql`
    SELECT MIN(version) AS version FROM holdfast_execution_event
    WHERE execution = ${execution} AND version > ${start} AND kind = 'cancellationDelivered'`);
  return found?.version ?? undefined;
}

const eventsPerPage = 200;

interface Kept {
  readonly version: number;
  /** True if a failure comes after it. */
  readonly isBeforeFailure: boolean;
}

/** Searches back from an event, without reading user values, to the start of the run at most. */
function* lastKept(execution: number, start: number, last: number): Tx<Kept> {
  let isBeforeFailure = false;
  for (let upTo = last; upTo > start;) {
    const page = yield* rows<{
      readonly version: number;
      readonly kind: string;
      readonly body: string;
    }>(sql`
      SELECT version, kind, body FROM holdfast_execution_event
      WHERE execution = ${execution} AND version > ${start} AND version <= ${upTo}
      ORDER BY version DESC LIMIT ${eventsPerPage}`);
    for (const { version, kind, body } of page) {
      const tried = {
        kind,
        ...(isOutcomeOfStep(kind) && { outcome: outcomeIn(body) }),
      };
      if (isKeptOnRetry(tried)) return { version, isBeforeFailure };
      isBeforeFailure ||= isFailureOfStep(tried);
    }
    upTo = (page.at(-1)?.version ?? start) - 1;
  }
  return { version: start, isBeforeFailure };
}
