import { HoldfastError, unreachable } from "../errors.ts";
import type { ExecutionId } from "../ids/execution-id.ts";
import { lastHolder } from "./state.ts";
import type { PendingState } from "./state.ts";

/** What becomes of where an execution stands when a hold on it ends, or it is to be woken. */

/** True while a worker may be running it: locked, or kept in memory while it waits. */
export function isHeld(pending: PendingState, at: number): boolean {
  switch (pending.kind) {
    case "locked":
      return true;
    case "finished":
      return false;
    default:
      return pending.leaseUntil !== null && pending.leaseUntil > at;
  }
}

/** Due at an instant, whatever it was; nobody has it. */
export function dueAgain(pending: PendingState, dueAt: number): PendingState {
  return {
    kind: "pending",
    dueAt,
    leaseUntil: null,
    lastLock: lastHolder(pending),
  };
}

/**
 * Whatever it waited for, its code is to be told. Who keeps it in memory is
 * told there, and has until the end of its lease.
 */
export function dueForCleanUp(pending: PendingState, at: number): PendingState {
  if (pending.kind === "locked" || pending.kind === "finished") return pending;
  if (isEndedFromOutside(pending)) return pending;
  const { leaseUntil, lastLock } = pending;
  const dueAt = Math.max(leaseUntil ?? at, at);
  if (pending.kind === "pending" && pending.dueAt <= dueAt) return pending;
  return {
    kind: "pending",
    dueAt,
    leaseUntil: leaseUntil !== null && leaseUntil > at ? leaseUntil : null,
    lastLock,
  };
}

/** Nobody has it and nobody can get it any more: who forces its end ends it. */
export function takenFromAll(pending: PendingState): PendingState {
  if (pending.kind === "finished") return pending;
  return {
    kind: "blocked",
    on: { kind: "resolution" },
    leaseUntil: null,
    lastLock: lastHolder(pending),
  };
}

/** True for what no worker runs: what is resolved, or ended by force. */
export function isEndedFromOutside(pending: PendingState): boolean {
  return pending.kind === "blocked" && pending.on.kind === "resolution";
}

/** What it waits for stays; a worker's hold on it goes. */
export function withoutLease(
  pending: PendingState,
  dueAt: number,
): PendingState {
  switch (pending.kind) {
    case "locked":
      return dueAgain(pending, dueAt);
    case "pending":
      return dueAgain(pending, Math.min(pending.dueAt, dueAt));
    case "blocked":
      return { ...pending, leaseUntil: null };
    case "finished":
      return pending;
    default:
      return unreachable(pending);
  }
}

/** @throws HoldfastError `UNLOCK_REFUSED` */
export function released(
  id: ExecutionId,
  pending: PendingState,
  dueAt: number,
): PendingState {
  if (pending.kind === "locked") return dueAgain(pending, dueAt);
  if (pending.kind === "pending" && dueAt >= pending.dueAt)
    throw new HoldfastError(
      "UNLOCK_REFUSED",
      `Execution ${id} is not locked, and is due at ${pending.dueAt} already. Unlocking may only bring that forward.`,
      { id, dueAt: pending.dueAt },
    );
  return withoutLease(pending, dueAt);
}
