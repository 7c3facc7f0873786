import type { ExecutionId } from "../../../model/ids/execution-id.ts";
import { announce, done, rows, type Done, type Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { insertEventsOnPostgres, type PlacedEvent } from "../rows.many.postgres.ts";
import { timerSet } from "../topics.ts";
import type { CreateAndLock, CreatedLocked } from "./lock.ts";
import { newLocked } from "./locked.ts";
import { lockedBy, type LockedEvent } from "./terms.ts";

/**
 * The set form of `createAndLock`, for the inputs that `insertLocked` accepts: two statements. Ids
 * that exist, or appear while this runs, are skipped. A lease counts from the call; `one` counts
 * from the time at which it runs.
 */
export function* createLockedOnPostgres(
  inputs: readonly CreateAndLock[],
): Tx<readonly (Done<CreatedLocked> | undefined)[]> {
  const locks = new Map<CreateAndLock, LockedEvent>();
  for (const input of inputs) locks.set(input, lockedBy(input.lock, input.execution.created.role));
  const keys = yield* insertLockedStates(inputs, [...locks.values()]);
  const events: PlacedEvent[] = [];
  const outcomes: (Done<CreatedLocked> | undefined)[] = [];
  for (const [input, locked] of locks) {
    const { id, at, created } = input.execution;
    const key = keys.get(id);
    if (key === undefined) {
      outcomes.push(undefined);
      continue;
    }
    const place = { execution: key, responses: 0 };
    events.push({ place: { ...place, version: 0, at }, event: created });
    events.push({
      place: { ...place, version: 1, at: input.lock.at },
      event: locked,
    });
    if (created.deadlineAt !== null) yield* announce(timerSet, id);
    yield* announce(timerSet, id);
    outcomes.push(
      done({
        id,
        key,
        nextVersion: 2,
        existed: false,
        locked: newLocked(key, input.execution, locked, input.input),
      }),
    );
  }
  if (events.length > 0) yield* insertEventsOnPostgres(events);
  return outcomes;
}

/** Inserted in the order of ids, as by all set forms, so that no two transactions deadlock. */
function* insertLockedStates(
  inputs: readonly CreateAndLock[],
  locks: readonly LockedEvent[],
): Tx<ReadonlyMap<ExecutionId, number>> {
  const executions = inputs.map(({ execution }) => execution);
  const created = executions.map((execution) => execution.created);
  const inserted = yield* rows<{
    readonly key: number;
    readonly id: ExecutionId;
  }>(sql`
    INSERT INTO holdfast_execution
      (id, role, function, input_hash, created_at, scheduled_at, version, state, lifecycle, lease_until,
       failures, deaths, lock_version, executor, run, owner, max_retries, backoff_ms, backoff_max_ms,
       responses, history_from, code_version, concurrency_key, deadline_at)
    SELECT given.id, given.role, given.function, given.input_hash, given.at, given.scheduled_at,
      1, 'locked', 'active', given.lease_until, 0, 0, 1, given.executor, given.run, given.owner,
      given.max_retries, given.backoff_ms, given.backoff_max_ms, 0, 0, given.code_version,
      given.concurrency_key, given.deadline_at
    FROM unnest(
      ${executions.map(({ id }) => id)}::text[],
      ${created.map(({ role }) => role)}::text[],
      ${created.map((one) => one.function)}::text[],
      ${created.map(({ inputHash }) => inputHash)}::text[],
      ${executions.map(({ at }) => at)}::bigint[],
      ${created.map(({ scheduledAt }) => scheduledAt)}::bigint[],
      ${locks.map(({ leaseUntil }) => leaseUntil)}::bigint[],
      ${locks.map(({ holder }) => holder.executor)}::text[],
      ${locks.map(({ holder }) => holder.run)}::text[],
      ${locks.map(({ holder }) => holder.owner)}::text[],
      ${locks.map(({ retry }) => retry.maxRetries)}::bigint[],
      ${locks.map(({ retry }) => retry.backoffMs)}::bigint[],
      ${locks.map(({ retry }) => retry.backoffMaxMs)}::bigint[],
      ${locks.map(({ codeVersion }, n) => codeVersion ?? created[n]?.codeVersion ?? null)}::text[],
      ${created.map(({ concurrencyKey }) => concurrencyKey)}::text[],
      ${created.map(({ deadlineAt }) => deadlineAt)}::bigint[]
    ) AS given (id, role, function, input_hash, at, scheduled_at, lease_until, executor, run, owner,
      max_retries, backoff_ms, backoff_max_ms, code_version, concurrency_key, deadline_at)
    ORDER BY given.id COLLATE "C"
    ON CONFLICT (id) DO NOTHING RETURNING key, id`);
  return new Map(inserted.map(({ key, id }) => [id, key]));
}
