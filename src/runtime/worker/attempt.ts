import { HoldfastError } from "../../model/errors.ts";
import type { ExecutionId } from "../../model/ids/execution-id.ts";
import type { CancellationView } from "../../stores/execution/control/cancelling.ts";
import type { HeldLockOf } from "../../stores/execution/lock/held.ts";
import type { StepOutput } from "../stream/run-output.ts";
import type { LockedExecution } from "../../stores/execution/lock/locked.ts";

/** The outcome of an attempt. */
export type Ended =
  | { readonly kind: "returned"; readonly value: unknown }
  | { readonly kind: "threw"; readonly error: unknown }
  /** The run cannot be executed as it is, and no code was executed: it is parked. */
  | { readonly kind: "refused"; readonly why: HoldfastError }
  /** The worker closes: the run is released, and the attempt does not count. */
  | { readonly kind: "released" }
  /** Another worker has the run: nothing is written. */
  | { readonly kind: "lost" };

export interface Attempt {
  readonly locked: LockedExecution;
  readonly controller: AbortController;
  /** Ends the attempt, even if its code continues. */
  readonly end: (ended: Ended) => void;
  readonly ended: Promise<Ended>;
  /** No other worker locks the run before this instant. */
  leaseUntil: number;
  /** Cancels the timer that ends the attempt if its code does not stop. */
  cancelGrace: () => void;
  /** The cancellation that told the attempt to stop, if there is one. */
  cancellation: CancellationView | null;
  /** Its live output, once it has some. */
  output: StepOutput | undefined;
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
    output: undefined,
  };
}

/** True if an attempt is made under a lock. An attempt whose end is not known here yet has an older lock. */
export function isUnder(attempt: Attempt | undefined, { lockVersion }: HeldLockOf): boolean {
  return (attempt?.locked.nextVersion ?? 0) > (lockVersion ?? 0);
}

/** Drops an attempt whose run another worker has: its outcome counts for nothing. */
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
    `Run ${id} was taken over by another worker; further work of this attempt is not recorded. Stop.`,
    { id },
  );
}

export function workerClosed(): HoldfastError {
  return new HoldfastError(
    "ABORTED",
    "The worker is closing; this attempt is released and repeated elsewhere.",
  );
}

export function attemptTimedOut({ id }: LockedExecution, timeoutMs: number): HoldfastError {
  return new HoldfastError(
    "ATTEMPT_TIMED_OUT",
    `An attempt of run ${id} took longer than its timeout of ${timeoutMs} ms; its later result is not recorded.`,
    { id, timeoutMs },
  );
}
