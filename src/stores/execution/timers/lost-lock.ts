import { controlKinds } from "../../../model/execution/event.ts";
import type { WhenPoisoned } from "../../../model/execution/event.ts";
import type { PendingState } from "../../../model/execution/state.ts";
import { textsOf } from "../../../sql/dialect.ts";
import { row, type Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { eventAt } from "../event-row.ts";
import type { ExecutionRecord } from "../state-row.ts";

/** Facts about the lock of a lost worker that its row does not hold. */

const withoutProgress: readonly string[] = [...controlKinds, "stepBegan"];

/**
 * True if the log has an event of the run's own since it was locked. Events from outside, such as a
 * pause, and beginnings of steps do not count.
 */
export function* hasRecorded({ key, state }: ExecutionRecord): Tx<boolean> {
  const { pending, version, role } = state;
  if (role !== "workflow" || pending.kind !== "locked") return false;
  if (version === pending.lockVersion) return false;
  const found = yield* row(sql`
    SELECT version FROM holdfast_execution_event
    WHERE execution = ${key} AND version > ${pending.lockVersion} AND NOT kind IN ${textsOf(withoutProgress)}
    ORDER BY version LIMIT 1`);
  return found !== undefined;
}

/** The wish of its function for a convicted run. The lock of a run that was not alone convicts none. */
export function* whenPoisoned({ key, state: { pending } }: ExecutionRecord): Tx<WhenPoisoned> {
  if (pending.kind !== "locked" || !pending.isAlone) return "park";
  const locked = yield* eventAt(key, pending.lockVersion);
  return (locked?.event.kind === "locked" && locked.event.whenPoisoned) || "park";
}

/**
 * True if the worker has renewed other locks since it last renewed this one: it is alive, and slow
 * only with this run. A worker renews all of its locks at each third of a lease, so a lock that
 * ends half a lease later proves it.
 */
export function* isOwnerAlive(
  execution: number,
  { holder, leaseUntil, lockVersion }: Extract<PendingState, { readonly kind: "locked" }>,
): Tx<boolean> {
  const { owner, executor, run } = holder;
  const locked = yield* eventAt(execution, lockVersion);
  if (owner === null || locked?.event.kind !== "locked") return false;
  const leaseMs = locked.event.leaseUntil - locked.at;
  const found = yield* row(sql`
    SELECT id FROM holdfast_execution
    WHERE owner = ${owner} AND lease_until IS NOT NULL AND lease_until > ${leaseUntil + Math.ceil(leaseMs / 2)}
      AND executor = ${executor} AND run = ${run}
    LIMIT 1`);
  return found !== undefined;
}
