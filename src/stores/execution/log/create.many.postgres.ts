import { splitToParts } from "../../../model/ids/execution-id.ts";
import type { ExecutionId } from "../../../model/ids/execution-id.ts";
import { announce, done, rows } from "../../../sql/operation.ts";
import type { Done, Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import type { CreateOutcome, NewExecution } from "./create.ts";
import { pendingWork, timerSet } from "../topics.ts";
import { insertEventsOnPostgres, type PlacedEvent } from "../rows.many.postgres.ts";

/**
 * The set form of `createExecution`: two statements for new ids, and one more if some have parents.
 * Ids that exist, or appear while this runs, are skipped. Children whose parents are missing,
 * ending or locked by another transaction are skipped too. Executions with tags are not passed to
 * it.
 */
export function* createManyOnPostgres(
  inputs: readonly NewExecution[],
): Tx<readonly (Done<CreateOutcome> | undefined)[]> {
  const parents = yield* lockParents(inputs);
  const keys = yield* insertStates(inputs, parents);
  const events = yield* announcedStarts(inputs, keys);
  if (events.length > 0) yield* insertEventsOnPostgres(events);
  return inputs.map(({ id }) => {
    const key = keys.get(id);
    return key === undefined ? undefined : done({ key, nextVersion: 1, existed: false });
  });
}

/**
 * The first events of the inputs that have a key, still to be inserted. It announces the due
 * functions and the deadlines.
 */
export function* announcedStarts(
  inputs: readonly NewExecution[],
  keys: ReadonlyMap<ExecutionId, number>,
): Tx<readonly PlacedEvent[]> {
  const events: PlacedEvent[] = [];
  const due = new Set<string>();
  for (const { id, at, created } of inputs) {
    const execution = keys.get(id);
    if (execution === undefined) continue;
    events.push({
      place: { execution, version: 0, at, responses: 0 },
      event: created,
    });
    if (created.role !== "external" && !created.isPaused) due.add(created.function);
    if (created.deadlineAt !== null) yield* announce(timerSet, id);
  }
  for (const name of due) yield* announce(pendingWork, name);
  return events;
}

/** The keys of parents that may have more children, locked so that they do not change. */
function* lockParents(inputs: readonly NewExecution[]): Tx<ReadonlyMap<ExecutionId, number>> {
  const ids = new Set<ExecutionId>();
  for (const { id } of inputs) {
    const parent = splitToParts(id)?.parent;
    if (parent !== undefined) ids.add(parent);
  }
  if (ids.size === 0) return new Map();
  const found = yield* rows<{
    readonly key: number;
    readonly id: ExecutionId;
  }>(sql`
    SELECT key, id FROM holdfast_execution
    WHERE id = ANY(${[...ids]}::text[]) AND state <> 'finished' AND lifecycle <> 'cancelling'
    ORDER BY key FOR NO KEY UPDATE SKIP LOCKED`);
  return new Map(found.map(({ key, id }) => [id, key]));
}

/**
 * The keys of the inserted rows. Rows are inserted in the order of their ids. An insert waits for
 * another transaction's insert of the same id, so two sets in opposite orders would deadlock.
 */
export function* insertStates(
  all: readonly NewExecution[],
  parents: ReadonlyMap<ExecutionId, number>,
): Tx<ReadonlyMap<ExecutionId, number>> {
  const parentOf = (id: ExecutionId): number | null | undefined => {
    const parts = splitToParts(id);
    return parts === undefined ? null : parents.get(parts.parent);
  };
  const inputs = all.filter(({ id }) => parentOf(id) !== undefined);
  if (inputs.length === 0) return new Map();
  const created = inputs.map((input) => input.created);
  const inserted = yield* rows<{
    readonly key: number;
    readonly id: ExecutionId;
  }>(sql`
    INSERT INTO holdfast_execution
      (id, parent, role, function, input_hash, created_at, scheduled_at, version, state, lifecycle, due_at,
       failures, deaths, responses, history_from, code_version, concurrency_key, deadline_at)
    SELECT given.id, given.parent, given.role, given.function, given.input_hash, given.at, given.scheduled_at, 0,
      CASE WHEN given.role = 'external' THEN 'blocked' ELSE 'pending' END, given.lifecycle,
      CASE WHEN given.role = 'external' THEN NULL ELSE given.scheduled_at END,
      0, 0, 0, 0, given.code_version, given.concurrency_key, given.deadline_at
    FROM unnest(
      ${inputs.map(({ id }) => id)}::text[],
      ${inputs.map(({ id }) => parentOf(id) ?? null)}::bigint[],
      ${created.map(({ role }) => role)}::text[],
      ${created.map((one) => one.function)}::text[],
      ${created.map(({ inputHash }) => inputHash)}::text[],
      ${inputs.map(({ at }) => at)}::bigint[],
      ${created.map(({ scheduledAt }) => scheduledAt)}::bigint[],
      ${created.map(({ isPaused }) => (isPaused ? "paused" : "active"))}::text[],
      ${created.map(({ codeVersion }) => codeVersion)}::text[],
      ${created.map(({ concurrencyKey }) => concurrencyKey)}::text[],
      ${created.map(({ deadlineAt }) => deadlineAt)}::bigint[]
    ) AS given (id, parent, role, function, input_hash, at, scheduled_at, lifecycle, code_version, concurrency_key, deadline_at)
    ORDER BY given.id COLLATE "C"
    ON CONFLICT (id) DO NOTHING RETURNING key, id`);
  return new Map(inserted.map(({ key, id }) => [id, key]));
}
