import type { ExecutionState } from "./state.ts";
import { isHeld } from "./pending.ts";
import { jittered, retryPauseMs, unlimitedRetryPolicy } from "../time/retry-policy.ts";

/**
 * After so many deaths in a row without progress a workflow is set aside. A
 * lock that ran out counts as one: where a death cannot be proven, it is all
 * that is seen of it.
 */
export const deathsMax = 5;

/** What becomes of an execution whose lock has run out. */
export type ExpiryDecision =
  | { readonly kind: "unlock"; readonly dueAt: number; readonly reason: string }
  | { readonly kind: "retry"; readonly dueAt: number }
  | { readonly kind: "finish"; readonly resultKind: "timedOut" | "cancelled" }
  /** A workflow without retries left: it ends as timed out, by its own code if it has begun. */
  | { readonly kind: "giveUp" }
  | { readonly kind: "park" };

/**
 * A workflow that got further since it was locked goes on at once: slow is not
 * broken. Otherwise it was an attempt that timed out. What a workflow does
 * while it is being cancelled is tried as often as it takes, since nobody else
 * would end what it started. `random` is below 1.
 */
export function decideExpiredLock(
  state: ExecutionState,
  at: number,
  random: number,
): ExpiryDecision {
  const { role, failures } = state;
  const isCancelling = state.lifecycle === "cancelling";
  if (isCancelling && role !== "workflow") return { kind: "finish", resultKind: "cancelled" };
  if (madeProgress(state))
    return {
      kind: "unlock",
      dueAt: at,
      reason: "the lock expired after progress",
    };
  const policy = state.retry ?? unlimitedRetryPolicy;
  const pauseMs = retryPauseMs(
    isCancelling ? { ...policy, maxRetries: null } : policy,
    failures + 1,
  );
  if (pauseMs === undefined)
    return role === "workflow" ? { kind: "giveUp" } : { kind: "finish", resultKind: "timedOut" };
  if (role === "workflow" && isDeadly(state)) return { kind: "park" };
  return { kind: "retry", dueAt: at + jittered(pauseMs, random) };
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
export function decideOwnerDeath(state: ExecutionState, at: number, random: number): DeathDecision {
  const free = { kind: "resume", dueAt: at, counts: "nothing" } as const;
  // Kept in memory while it waited: nothing was running.
  if (state.pending.kind !== "locked") return free;
  if (state.role !== "workflow") {
    if (state.lifecycle === "cancelling") return { kind: "finish", resultKind: "cancelled" };
    const pauseMs = retryPauseMs(state.retry ?? unlimitedRetryPolicy, state.failures + 1);
    return pauseMs === undefined
      ? { kind: "finish", resultKind: "failed" }
      : {
          kind: "resume",
          dueAt: at + jittered(pauseMs, random),
          counts: "attempt",
        };
  }
  if (madeProgress(state)) return free;
  if (isDeadly(state)) return { kind: "park" };
  const pauseMs = retryPauseMs(
    { ...(state.retry ?? unlimitedRetryPolicy), maxRetries: null },
    state.deaths + 1,
  );
  return {
    kind: "resume",
    dueAt: at + jittered(pauseMs ?? 0, random),
    counts: "death",
  };
}

/** Whether one more death is one too many. A run that is being cancelled is never set aside, since it has to end; a paused one is aside already. */
function isDeadly({ deaths, lifecycle }: ExecutionState): boolean {
  return deaths + 1 >= deathsMax && lifecycle === "active";
}

function madeProgress({ role, pending, version }: ExecutionState): boolean {
  return role === "workflow" && pending.kind === "locked" && version > pending.lockVersion;
}

/** When a cancellation comes, and what it would cut off. */
export interface CancelledAt {
  readonly at: number;
  /** It ever had children, or it is a workflow whose code has recorded something: then that code is to end it. */
  readonly hasBegun: boolean;
}

/**
 * What a request to cancel does. Nothing may be left running or half done
 * behind an execution that ended, so one that a worker has, or that has begun,
 * is only marked: its code ends it.
 */
export function decideCancellation(
  { pending, lifecycle }: ExecutionState,
  { at, hasBegun }: CancelledAt,
): "alreadyFinished" | "alreadyCancelling" | "finish" | "mark" {
  if (pending.kind === "finished") return "alreadyFinished";
  if (lifecycle === "cancelling") return "alreadyCancelling";
  return isHeld(pending, at) || hasBegun ? "mark" : "finish";
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
  if (decision === "alreadyFinished" || decision === "alreadyCancelling") return "nothing";
  return state.role === "workflow" || cancelled.hasBegun ? decision : "finish";
}
