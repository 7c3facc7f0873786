import { HoldfastError, unreachable } from "../errors.ts";
import type { ExecutionId } from "../ids/execution-id.ts";
import { isSleeping, lastHolder } from "./state.ts";
import type { PendingState, Sleeping } from "./state.ts";

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

/** Waits for a response, or until an instant; who keeps it in memory has it until its lease ends, as always. */
export function asleep(sleeping: Omit<Sleeping, "kind" | "dueAt">): PendingState {
  const { wakeAt, leaseUntil } = sleeping;
  const dueAt = Math.max(wakeAt, leaseUntil ?? wakeAt);
  return { ...sleeping, kind: "pending", dueAt };
}

/**
 * What it waited for has come, or its code is to be told something. Who keeps
 * it in memory hears of it there, and has until the end of its lease.
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

/** Whatever it waits for, its code is to be told that it is to end. */
export function dueForCleanUp(pending: PendingState, at: number): PendingState {
  if (pending.kind === "locked" || pending.kind === "finished") return pending;
  return isEndedFromOutside(pending) ? pending : woken(pending, at);
}

/** What its own run keeps in memory while it waits goes on waiting, for longer; undefined for what is then locked. */
export function keptLonger(
  pending: PendingState,
  at: number,
  { leaseUntil }: { readonly leaseUntil: number },
): PendingState | undefined {
  if (pending.kind === "blocked") return { ...pending, leaseUntil };
  return isSleeping(pending) && pending.dueAt > at ? asleep({ ...pending, leaseUntil }) : undefined;
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
      `Execution ${id} is not locked, and is due at ${pending.dueAt} already. Unlocking may only bring that forward.`,
      { id, dueAt: pending.dueAt },
    );
  return withoutLease(pending, dueAt);
}
