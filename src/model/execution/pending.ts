import { HoldfastError, unreachable } from "../errors.ts";
import type { ExecutionId } from "../ids/execution-id.ts";
import { isSleeping, lastHolder } from "./state.ts";
import type { PendingState, Sleeping } from "./state.ts";

/** Computes an execution's state when a worker's hold on it ends, or when it wakes. */

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

/** Returns the execution as due at an instant and held by no worker, from any state. */
export function dueAgain(pending: PendingState, dueAt: number): PendingState {
  return {
    kind: "pending",
    dueAt,
    leaseUntil: null,
    lastLock: lastHolder(pending),
  };
}

/**
 * Returns the state of a wait for a response or an instant. The worker that keeps it in memory
 * holds it until its lease ends.
 */
export function asleep(sleeping: Omit<Sleeping, "kind" | "dueAt">): PendingState {
  const { wakeAt, leaseUntil } = sleeping;
  const dueAt = Math.max(wakeAt, leaseUntil ?? wakeAt);
  return { ...sleeping, kind: "pending", dueAt };
}

/**
 * Returns the state after the awaited response has come, or when the code must be notified.
 * The worker that keeps it in memory is notified, and has until the end of its lease.
 */
export function woken(
  pending: Extract<PendingState, { readonly kind: "pending" | "blocked" }>,
  at: number,
): PendingState {
  const { leaseUntil, lastLock } = pending;
  const next = Math.max(leaseUntil ?? at, at);
  return {
    kind: "pending",
    dueAt: pending.kind === "pending" ? Math.min(pending.dueAt, next) : next,
    leaseUntil: leaseUntil !== null && leaseUntil > at ? leaseUntil : null,
    lastLock,
  };
}

/** Returns the execution as due, so that its code is told to end, whatever it waits for. */
export function dueForCleanUp(pending: PendingState, at: number): PendingState {
  if (pending.kind === "locked" || pending.kind === "finished") return pending;
  return isEndedFromOutside(pending) ? pending : woken(pending, at);
}

/**
 * Returns the longer wait of an execution that its own run keeps in memory; undefined when the lock
 * makes it locked instead.
 */
export function keptLonger(
  pending: PendingState,
  at: number,
  { leaseUntil }: { readonly leaseUntil: number },
): PendingState | undefined {
  if (pending.kind === "blocked") return { ...pending, leaseUntil };
  return isSleeping(pending) && pending.dueAt > at ? asleep({ ...pending, leaseUntil }) : undefined;
}

/** Returns a state that no worker has or can get. The caller that forces the end ends it. */
export function takenFromAll(pending: PendingState): PendingState {
  if (pending.kind === "finished") return pending;
  return {
    kind: "blocked",
    on: { kind: "resolution" },
    leaseUntil: null,
    lastLock: lastHolder(pending),
  };
}

/** True for an execution that no worker runs: it is resolved, or ended by force. */
export function isEndedFromOutside(pending: PendingState): boolean {
  return pending.kind === "blocked" && pending.on.kind === "resolution";
}

/** Returns the state without a worker's hold. The wait stays. */
export function withoutLease(pending: PendingState, dueAt: number): PendingState {
  switch (pending.kind) {
    case "locked":
      return dueAgain(pending, dueAt);
    case "pending":
      return isSleeping(pending)
        ? asleep({ ...pending, leaseUntil: null })
        : dueAgain(pending, Math.min(pending.dueAt, dueAt));
    case "blocked":
      return { ...pending, leaseUntil: null };
    case "finished":
      return pending;
    default:
      return unreachable(pending);
  }
}

/** @throws HoldfastError `UNLOCK_REFUSED` */
export function released(id: ExecutionId, pending: PendingState, dueAt: number): PendingState {
  if (pending.kind === "locked") return dueAgain(pending, dueAt);
  if (pending.kind === "pending" && !isSleeping(pending) && dueAt >= pending.dueAt)
    throw new HoldfastError(
      "UNLOCK_REFUSED",
      `Run ${id} is not locked, and is already due at ${pending.dueAt}. Unlocking may only make it due earlier.`,
      { id, dueAt: pending.dueAt },
    );
  return withoutLease(pending, dueAt);
}
