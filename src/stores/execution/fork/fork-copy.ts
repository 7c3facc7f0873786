import { HoldfastError } from "../../../model/errors.ts";
import { controlKinds, type ForkOrigin } from "../../../model/execution/event.ts";
import type { ExecutionId } from "../../../model/ids/execution-id.ts";
import type { ExecutionState } from "../../../model/execution/state.ts";
import { textsOf } from "../../../sql/dialect.ts";
import { row, run, type Tx } from "../../../sql/operation.ts";
import { sql, type Statement } from "../../../sql/statement.ts";
import { eventColumns, eventOf, type EventRow } from "../event-row.ts";
import type { ExecutionRecord } from "../state-row.ts";

/** The most that one transaction copies. */
const copiedMax = { events: 100_000, responses: 100_000 } as const;

/** @throws HoldfastError `FORK_TOO_LARGE` */
export function assertCopyable(
  { id, state }: ExecutionRecord,
  version: number,
  prunedBefore: number,
): void {
  assertFew(id, "events", version - prunedBefore, copiedMax.events);
  assertFew(id, "responses", state.responses, copiedMax.responses);
}

/** @throws HoldfastError `FORK_TOO_LARGE` */
export function assertFew(
  id: ExecutionId,
  what: "events" | "responses" | "open requests" | "announced steps",
  count: number,
  max: number,
): void {
  if (count <= max) return;
  throw new HoldfastError(
    "FORK_TOO_LARGE",
    `A copy of run ${id} would have more than ${max} ${what}, too many for one transaction; nothing was written. ` +
      "Fork it at an earlier version, or start a new run.",
    { id, what, count, max },
  );
}

/** Copies events 1 to `version`; the copy has its own event 0. */
export function* copyEvents(
  source: number,
  copy: number,
  version: number,
  responses: number,
): Tx<void> {
  yield* run(sql`
    INSERT INTO holdfast_execution_event
      (execution, version, at, responses, kind, call, seen, inbox, ordinal, withdrawn, body, payload)
    SELECT CAST(${copy} AS BIGINT), version, at,
      CASE WHEN responses > ${responses} THEN CAST(${responses} AS BIGINT) ELSE responses END,
      kind, call, seen, inbox, ordinal, withdrawn, body, payload
    FROM holdfast_execution_event
    WHERE execution = ${source} AND version > 0 AND version <= ${version} ORDER BY version`);
}

/** The columns with the results of children, whose logs may be removed. */
const copied: Statement = sql`
  r.at, r.kind, r.inbox, r.source, r.outcome, r.finished_version, r.value_hash, COALESCE(r.payload, e.payload)`;

/**
 * Keeps the read mark of responses that runs before the copied one have read. The copy may read the
 * others itself.
 */
function readBefore(continuations: number): Statement {
  return sql`CASE WHEN r.read_by < ${continuations} THEN r.read_by END`;
}

const into: Statement = sql`
  INSERT INTO holdfast_execution_response
    (execution, seq, ordinal, at, kind, inbox, source, outcome, finished_version, value_hash, payload,
     read_by)`;

const withResults: Statement = sql`
  holdfast_execution_response r
    LEFT JOIN holdfast_execution_event e ON e.execution = r.child AND e.version = r.finished_version`;

/**
 * Copies the responses that the copied events know of, with their numbers. A retried run also keeps
 * later responses that are not failures of children: their work is done. Returns the number of
 * responses of the copy.
 */
export function* copyResponses(
  source: ExecutionRecord,
  copy: number,
  from: ForkOrigin,
): Tx<number> {
  const { key, state } = source;
  const seen = yield* lastSeen(key, state, from.version);
  const { continuations } = yield* startsUpTo(key, state, from.version);
  const readBy = readBefore(continuations);
  yield* run(sql`
    ${into}
    SELECT CAST(${copy} AS BIGINT), r.seq, r.ordinal, ${copied}, ${readBy} FROM ${withResults}
    WHERE r.execution = ${key} AND r.seq <= ${seen} ORDER BY r.seq`);
  if (!from.isRetry) return seen;
  const later = yield* run(sql`
    ${into}
    SELECT CAST(${copy} AS BIGINT), CAST(${seen} AS BIGINT) + ROW_NUMBER() OVER (ORDER BY r.seq),
      COALESCE(base.ordinal, 0) + ROW_NUMBER() OVER (PARTITION BY r.inbox ORDER BY r.seq), ${copied}, ${readBy}
    FROM ${withResults}
      LEFT JOIN (
        SELECT inbox, MAX(ordinal) AS ordinal FROM holdfast_execution_response
        WHERE execution = ${key} AND seq <= ${seen} GROUP BY inbox
      ) AS base ON base.inbox = r.inbox
    WHERE r.execution = ${key} AND r.seq > ${seen} AND NOT (r.kind = 'child' AND r.outcome <> 'completed')
    ORDER BY r.seq`);
  return seen + later;
}

type Starts = Pick<ExecutionState, "historyFrom" | "responsesFrom" | "continuations">;

/** The start of the run that the events up to a version end in. */
export function* startsUpTo(
  execution: number,
  { continuations }: Pick<ExecutionState, "continuations">,
  version: number,
): Tx<Starts> {
  const none = { historyFrom: 0, responsesFrom: 0, continuations: 0 };
  if (continuations === 0) return none;
  const found = yield* row<EventRow>(sql`
    SELECT ${eventColumns} FROM holdfast_execution_event
    WHERE execution = ${execution} AND version <= ${version} AND kind = 'continued'
    ORDER BY version DESC LIMIT 1`);
  const event = found && eventOf(found).event;
  if (found === undefined || event?.kind !== "continued") return none;
  const { version: historyFrom, responses: responsesFrom } = found;
  return { historyFrom, responsesFrom, continuations: event.continuation };
}

/**
 * The last response that the events up to `version` know of. They received it, or asked a set and
 * got it at once, or did so before they continued. An answer that arrived after the last of them
 * does not count. Responses of earlier runs under the id do count, since the boundary between the
 * runs includes them.
 */
export function* lastSeen(
  execution: number,
  state: Pick<ExecutionState, "continuations">,
  version: number,
): Tx<number> {
  const seen = yield* row<{ readonly seq: number | null }>(sql`
    SELECT MAX(seen) AS seq FROM holdfast_execution_event
    WHERE execution = ${execution} AND version <= ${version}`);
  const last = yield* row<{
    readonly version: number;
    readonly responses: number;
  }>(sql`
    SELECT version, responses FROM holdfast_execution_event
    WHERE execution = ${execution} AND version <= ${version} AND kind NOT IN ${textsOf(controlKinds)}
    ORDER BY version DESC LIMIT 1`);
  const asked = yield* row<{ readonly seq: number | null }>(sql`
    SELECT MAX(r.seq) AS seq FROM holdfast_execution_event q
      JOIN holdfast_execution_response r
        ON r.execution = q.execution AND r.inbox = q.inbox AND r.ordinal = q.ordinal
    WHERE q.execution = ${execution} AND q.version <= ${version} AND q.ordinal IS NOT NULL
      AND (r.seq <= q.responses OR (q.version < ${last?.version ?? 0} AND r.seq <= ${last?.responses ?? 0}))`);
  const { responsesFrom } = yield* startsUpTo(execution, state, version);
  return Math.max(seen?.seq ?? 0, asked?.seq ?? 0, responsesFrom);
}
