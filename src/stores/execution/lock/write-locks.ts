import { integersOf } from "../../../sql/dialect.ts";
import { announce, run, type Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { eventColumnsOf } from "../event-row.ts";
import type { ExecutionRecord } from "../state-row.ts";
import { timerSet } from "../topics.ts";
import type { ServedFunction } from "./limits.ts";
import { lockedBy, type LockedEvent, type LockTerms } from "./terms.ts";

/**
 * Groups records by lock, usually into one group: it takes two statements, however many are locked.
 */
export function byLock(
  records: readonly ExecutionRecord[],
  functions: readonly ServedFunction[],
  input: LockTerms,
): ReadonlyMap<LockedEvent, readonly ExecutionRecord[]> {
  const served = new Map(functions.map((each) => [each.name, each]));
  const events = new Map<string, LockedEvent>();
  const groups = new Map<LockedEvent, ExecutionRecord[]>();
  for (const record of records) {
    const { role } = record.state;
    const { retry = input.retry, whenPoisoned } = served.get(record.function) ?? {};
    const name = `${role} ${whenPoisoned} ${JSON.stringify(retry)}`;
    let event = events.get(name);
    if (event === undefined) {
      const wishes = { ...(retry && { retry }), ...(whenPoisoned && { whenPoisoned }) };
      event = lockedBy({ ...input, ...wishes }, role);
      events.set(name, event);
      groups.set(event, []);
    }
    groups.get(event)?.push(record);
  }
  return groups;
}

/** Writes the same lock to all of them. */
export function* writeLocks(
  records: readonly ExecutionRecord[],
  event: LockedEvent,
  at: number,
): Tx<void> {
  const { holder, leaseUntil, retry, codeVersion, alone } = event;
  const keys = integersOf(records.map((record) => record.key));
  yield* run(sql`
    UPDATE holdfast_execution SET
      version = version + 1, state = 'locked', lifecycle = CASE WHEN lifecycle = 'parked' THEN 'active' ELSE lifecycle END,
      due_at = NULL, lease_until = ${leaseUntil}, lock_version = version + 1, is_alone = ${alone ? 1 : null},
      executor = ${holder.executor}, run = ${holder.run}, owner = ${holder.owner}, seen = NULL, wake_at = NULL,
      max_retries = ${retry.maxRetries}, backoff_ms = ${retry.backoffMs}, backoff_max_ms = ${retry.backoffMaxMs},
      code_version = COALESCE(${codeVersion}, code_version)
    WHERE key IN ${keys}`);
  const { kind, call, seen, body } = eventColumnsOf(event);
  yield* run(sql`
    INSERT INTO holdfast_execution_event (execution, version, at, responses, kind, call, seen, body)
    SELECT key, version, CAST(${at} AS BIGINT), responses, CAST(${kind} AS TEXT), CAST(${call} AS BIGINT),
      CAST(${seen} AS BIGINT), CAST(${body} AS TEXT)
    FROM holdfast_execution WHERE key IN ${keys} ORDER BY key`);
  for (const { id } of records) yield* announce(timerSet, id);
}
