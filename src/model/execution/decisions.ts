import type { ExecutionState } from "./state.ts";
import { isHeld } from "./transition.ts";
import {
  jittered,
  retryPauseMs,
  unlimitedRetryPolicy,
} from "../time/retry-policy.ts";

/** After so many deaths in a row without progress a workflow is set aside. */
export const deathsMax = 5;

/** What becomes of an execution whose lock has run out. */
export type ExpiryDecision =
  | { readonly kind: "unlock"; readonly dueAt: number; readonly reason: string }
  | { readonly kind: "retry"; readonly dueAt: number }
  | { readonly kind: "finish"; readonly resultKind: "timedOut" | "cancelled" };

/**
 * A workflow that got further since it was locked goes on at once: slow is not
 * broken. Otherwise it was an attempt that timed out. `random` is below 1.
 */
export function decideExpiredLock(
  state: ExecutionState,
  at: number,
  random: number,
): ExpiryDecision {
  if (state.lifecycle === "cancelling")
    return state.role === "workflow"
      ? {
          kind: "unlock",
          dueAt: at,
          reason: "the lock expired while cancelling",
        }
      : { kind: "finish", resultKind: "cancelled" };
  if (madeProgress(state))
    return {
      kind: "unlock",
      dueAt: at,
      reason: "the lock expired after progress",
    };
  const pauseMs = retryPauseMs(
    state.retry ?? unlimitedRetryPolicy,
    state.failures + 1,
  );
  return pauseMs === undefined
    ? { kind: "finish", resultKind: "timedOut" }
    : { kind: "retry", dueAt: at + jittered(pauseMs, random) };
}

/** What becomes of an execution whose worker's process has provably died. */
export type DeathDecision =
  | {
      readonly kind: "resume";
      readonly dueAt: number;
      readonly counts: "attempt" | "death" | "nothing";
    }
  | { readonly kind: "park" }
  | { readonly kind: "finish"; readonly resultKind: "failed" | "cancelled" };

/**
 * For an activity a death is a failed attempt. For a workflow it is free when
 * the run got further since its lock; a run that keeps taking its workers down
 * with it is parked.
 */
export function decideOwnerDeath(
  state: ExecutionState,
  at: number,
  random: number,
): DeathDecision {
  const free = { kind: "resume", dueAt: at, counts: "nothing" } as const;
  // Kept in memory while it waited: nothing was running.
  if (state.pending.kind !== "locked") return free;
  if (state.role !== "workflow") {
    if (state.lifecycle === "cancelling")
      return { kind: "finish", resultKind: "cancelled" };
    const pauseMs = retryPauseMs(
      state.retry ?? unlimitedRetryPolicy,
      state.failures + 1,
    );
    return pauseMs === undefined
      ? { kind: "finish", resultKind: "failed" }
      : {
          kind: "resume",
          dueAt: at + jittered(pauseMs, random),
          counts: "attempt",
        };
  }
  if (state.lifecycle === "cancelling" || madeProgress(state)) return free;
  const deaths = state.deaths + 1;
  if (deaths >= deathsMax) return { kind: "park" };
  const pauseMs = retryPauseMs(
    { ...(state.retry ?? unlimitedRetryPolicy), maxRetries: null },
    deaths,
  );
  return {
    kind: "resume",
    dueAt: at + jittered(pauseMs ?? 0, random),
    counts: "death",
  };
}

function madeProgress({ role, pending, version }: ExecutionState): boolean {
  return (
    role === "workflow" &&
    pending.kind === "locked" &&
    version > pending.lockVersion
  );
}

/** When a cancellation comes, and whether the execution ever had children. */
export interface CancelledAt {
  readonly at: number;
  readonly hasChildren: boolean;
}

/**
 * What a request to cancel does. Nothing may be left running behind an
 * execution that ended, so one that a worker has, or that had children, is
 * only marked: its worker, or the one who cancels it, ends it.
 */
export function decideCancellation(
  { pending, lifecycle }: ExecutionState,
  { at, hasChildren }: CancelledAt,
): "alreadyFinished" | "alreadyCancelling" | "finish" | "mark" {
  if (pending.kind === "finished") return "alreadyFinished";
  if (lifecycle === "cancelling") return "alreadyCancelling";
  return isHeld(pending, at) || hasChildren ? "mark" : "finish";
}

/**
 * What a deadline that has passed does. It is the same, except that what runs
 * and is no workflow ends at once: its worker's result is then refused.
 */
export function decideDeadline(
  state: ExecutionState,
  cancelled: CancelledAt,
): "nothing" | "finish" | "mark" {
  const decision = decideCancellation(state, cancelled);
  if (decision === "alreadyFinished" || decision === "alreadyCancelling")
    return "nothing";
  return state.role === "workflow" || cancelled.hasChildren
    ? decision
    : "finish";
}
