import type {
  ExecutionState,
  PendingState,
} from "../../../model/execution-state.ts";
import { announce } from "../../../sql/operation.ts";
import type { Tx } from "../../../sql/operation.ts";
import type { ExecutionRecord } from "../state-row.ts";
import {
  cancellationMarked,
  pendingWork,
  placeFreed,
  timerSet,
} from "../topics.ts";

/**
 * Tells workers that something can be locked or that a place under a limit is
 * free, sleepers that a time was set, and whoever ends what is cancelled. `state` is the one before; a new
 * execution has none.
 */
export function* announceState(
  {
    id,
    function: name,
    state: before,
  }: Pick<ExecutionRecord, "id" | "function"> & {
    readonly state?: ExecutionState;
  },
  { pending, lifecycle }: ExecutionState,
): Tx<void> {
  if (pending.kind === "pending" && lifecycle === "active")
    yield* announce(pendingWork, name);
  else if (before !== undefined && isLetGo(before.pending, pending))
    yield* announce(placeFreed, name);
  if (lifecycle === "cancelling") yield* announce(cancellationMarked, name);
  if (pending.kind === "locked") yield* announce(timerSet, id);
}

/** True when it counted as held, and does so no longer or only up to an instant that nobody knows of. */
function isLetGo(before: PendingState, after: PendingState): boolean {
  const lease = leaseOf(before);
  if (lease === null || after.kind === "locked") return false;
  return before.kind === "locked" || leaseOf(after) !== lease;
}

function leaseOf(pending: PendingState): number | null {
  return pending.kind === "finished" ? null : pending.leaseUntil;
}
