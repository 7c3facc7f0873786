import { HoldfastError } from "../../model/errors.ts";
import type { ExecutionId } from "../../model/ids/execution-id.ts";
import type { CancellationView } from "../../stores/execution/control/cancelling.ts";
import type { HeldLockOf } from "../../stores/execution/lock/held.ts";
import type { LockedExecution } from "../../stores/execution/lock/locked.ts";

/** How an attempt ended. */
export type Ended =
  | { readonly kind: "returned"; readonly value: unknown }
  | { readonly kind: "threw"; readonly error: unknown }
  /** It cannot be run as it is, and none of its code was: it is parked. */
  | { readonly kind: "refused"; readonly why: HoldfastError }
  /** The worker closes: it is given back and counts for nothing. */
  | { readonly kind: "released" }
  /** Somebody else has it: nothing is written. */
  | { readonly kind: "lost" };

export interface Attempt {
  readonly locked: LockedExecution;
  readonly controller: AbortController;
  /** Ends it, whatever its code does. */
  readonly end: (ended: Ended) => void;
  readonly ended: Promise<Ended>;
  /** Until then nobody else locks it. */
  leaseUntil: number;
  /** Takes back the time after which it ends although its code does not. */
  cancelGrace: () => void;
  /** Why it was told to stop, if somebody cancelled it. */
  cancellation: CancellationView | null;
}

export function newAttempt(locked: LockedExecution): Attempt {
  let end: Attempt["end"] = () => undefined;
  const ended = new Promise<Ended>((resolve) => {
    end = resolve;
  });
  return {
    locked,
    controller: new AbortController(),
    end,
    ended,
    leaseUntil: locked.leaseUntil,
    cancelGrace: () => undefined,
    cancellation: null,
  };
}

/** Whether an attempt is made under a lock; one whose end is not known here yet was made under an older one. */
export function isUnder(attempt: Attempt | undefined, { lockVersion }: HeldLockOf): boolean {
  return (attempt?.locked.nextVersion ?? 0) > (lockVersion ?? 0);
}

/** Somebody else has it: what this attempt still does counts for nothing. */
export function lose({ locked, controller, end }: Attempt): void {
  controller.abort(takenOver(locked.id));
  end({ kind: "lost" });
}

export function cancelledWhile(id: ExecutionId): HoldfastError {
  return new HoldfastError("RUN_CANCELLED", `Run ${id} was cancelled.`, { id });
}

function takenOver(id: ExecutionId): HoldfastError {
  return new HoldfastError(
    "LOCK_LOST",
    `Run ${id} was taken over by another worker; what this attempt still does is not recorded. Stop.`,
    { id },
  );
}

export function workerClosed(): HoldfastError {
  return new HoldfastError(
    "ABORTED",
    "The worker closes; this attempt is given back and made again elsewhere.",
  );
}

export function attemptTimedOut({ id }: LockedExecution, timeoutMs: number): HoldfastError {
  return new HoldfastError(
    "ATTEMPT_TIMED_OUT",
    `An attempt of run ${id} took longer than its timeout of ${timeoutMs} ms; what it still returns is not recorded.`,
    { id, timeoutMs },
  );
}
