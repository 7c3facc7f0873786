import type { LossCount, WhenPoisoned } from "./event.ts";
import type { ExecutionState } from "./state.ts";
import { isHeld } from "./pending.ts";
import { jittered, retryPauseMs, unlimitedRetryPolicy } from "../time/retry-policy.ts";

/**
 * The number of deaths that make a run a suspect. A process may die of one of the runs that it has
 * locked, and no other process sees which one. So a death without progress counts for all of them
 * and convicts none:
 *
 *  3 deaths             suspect: locked by an idle worker, which runs nothing beside it
 *  5 deaths as suspect  convicted: parked, or cancelled if its function says so (`whenPoisoned`)
 *  5 more in cleanup    ended by force, and its children with it
 *
 * A recorded event, an attempt that ends by itself, `unpark`, a retry, a fork and a new start clear
 * both counts. A request to cancel clears the second. Error retries are counted separately.
 */
const suspectDeaths = 3;
export const aloneDeathsMax = 5;

/** The overdue time after which a suspect runs beside other work. A death there convicts no run. */
export const suspectWaitMs = 60_000;

export function isSuspect({ deaths }: Pick<ExecutionState, "deaths">): boolean {
  return deaths >= suspectDeaths;
}

export function isConvicted({ aloneDeaths }: Pick<ExecutionState, "aloneDeaths">): boolean {
  return aloneDeaths >= aloneDeathsMax;
}

/** A lock that expired, or whose worker died. */
export interface LostLock {
  readonly at: number;
  /** A number below 1, for spreading retries. */
  readonly random: number;
  /** True when the run recorded an event of its own since the lock. */
  readonly hasRecorded: boolean;
  /** The wish of its function, as the lock recorded it; defaults to `"park"`. */
  readonly whenPoisoned?: WhenPoisoned;
}

/** The next state of an execution that lost its worker. */
export type LossDecision =
  | { readonly kind: "resume"; readonly dueAt: number; readonly counts: LossCount }
  | { readonly kind: WhenPoisoned; readonly counts: "aloneDeath" }
  | { readonly kind: "finish"; readonly resultKind: "failed" | "timedOut" | "cancelled" };

/**
 * Decides for an expired lock. It counts as a death, since an unproven death looks the same. An
 * owner that renewed other locks since is alive and slow, so nothing is counted.
 */
export function decideExpiredLock(
  state: ExecutionState,
  lost: LostLock & { readonly isOwnerAlive: boolean },
): LossDecision | { readonly kind: "unlock"; readonly dueAt: number; readonly reason: string } {
  if (hasProgress(state, lost))
    return { kind: "unlock", dueAt: lost.at, reason: "the lock expired after progress" };
  return lost.isOwnerAlive ? afterSlowness(state, lost) : afterDeath(state, lost, "timedOut");
}

/** Decides for an execution whose worker's process is proven dead. */
export function decideOwnerDeath(state: ExecutionState, lost: LostLock): LossDecision {
  // The run was only kept in memory while it waited; nothing was running.
  if (state.pending.kind !== "locked" || hasProgress(state, lost))
    return { kind: "resume", dueAt: lost.at, counts: "nothing" };
  return afterDeath(state, lost, "failed");
}

/**
 * A workflow resumes after its recorded events. An attempt of an activity starts from the
 * beginning.
 */
function hasProgress({ role }: ExecutionState, { hasRecorded }: LostLock): boolean {
  return role === "workflow" && hasRecorded;
}

function afterDeath(
  state: ExecutionState,
  { at, random, whenPoisoned = "park" }: LostLock,
  resultKind: "failed" | "timedOut",
): LossDecision {
  const ended = endedByLoss(state, resultKind);
  if (ended !== undefined) return ended;
  const counts = state.pending.kind === "locked" && state.pending.isAlone ? "aloneDeath" : "death";
  // A paused run is already out of the way, and a cancelled run has to end.
  if (
    counts === "aloneDeath" &&
    state.lifecycle === "active" &&
    isConvicted({ aloneDeaths: state.aloneDeaths + 1 })
  )
    // An activity has no cleanup to run.
    return { kind: state.role === "workflow" ? whenPoisoned : "park", counts };
  return { kind: "resume", dueAt: at + pauseMs(state, state.deaths + 1, random), counts };
}

function afterSlowness(state: ExecutionState, { at, random }: LostLock): LossDecision {
  return (
    endedByLoss(state, "timedOut") ?? {
      kind: "resume",
      dueAt: at + pauseMs(state, 1, random),
      counts: "nothing",
    }
  );
}

/** Ends an activity that is being cancelled, or that allows only one attempt. */
function endedByLoss(
  { role, lifecycle, retry }: ExecutionState,
  resultKind: "failed" | "timedOut",
): LossDecision | undefined {
  if (role === "workflow") return undefined;
  if (lifecycle === "cancelling") return { kind: "finish", resultKind: "cancelled" };
  return retry?.maxRetries === 0 ? { kind: "finish", resultKind } : undefined;
}

/** Returns a pause that grows like the pause between retries, without a limit on their number. */
function pauseMs({ retry }: ExecutionState, loss: number, random: number): number {
  const policy = { ...(retry ?? unlimitedRetryPolicy), maxRetries: null };
  return jittered(retryPauseMs(policy, loss) ?? 0, random);
}

/** The instant of a cancellation, and the progress that it would cut off. */
export interface CancelledAt {
  readonly at: number;
  /**
   * True when it ever had children, or is a workflow whose code has recorded events. Then its code
   * has to end it.
   */
  readonly hasBegun: boolean;
}

/**
 * Decides what a request to cancel does. An ended execution must leave nothing running or half done
 * behind. So an execution that a worker holds, or that has started, is only marked, and its code
 * ends it.
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
 * Decides what a passed deadline does. It acts like a request to cancel, except that a running
 * activity ends at once and its worker's result is refused.
 */
export function decideDeadline(
  state: ExecutionState,
  cancelled: CancelledAt,
): "nothing" | "finish" | "mark" {
  const decision = decideCancellation(state, cancelled);
  if (decision === "alreadyFinished" || decision === "alreadyCancelling") return "nothing";
  return state.role === "workflow" || cancelled.hasBegun ? decision : "finish";
}
