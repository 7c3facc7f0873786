import type { ExecutionRole } from "../execution/event.ts";

/** How failures are retried. */
export interface RetryPolicy {
  /** Attempts after the first; null retries for ever. */
  readonly maxRetries: number | null;
  /** The pause before the first retry; it doubles with each one after. */
  readonly backoffMs: number;
  /** No pause is longer. */
  readonly backoffMaxMs: number;
}

/** The default of activities. */
const defaultRetryPolicy: RetryPolicy = {
  maxRetries: 5,
  backoffMs: 100,
  backoffMaxMs: 60_000,
};

/** What workflows get: their failures are the machine's, so they never run out. */
export const unlimitedRetryPolicy: RetryPolicy = {
  ...defaultRetryPolicy,
  maxRetries: null,
};

export function retryPolicyFor(role: ExecutionRole): RetryPolicy {
  return role === "workflow" ? unlimitedRetryPolicy : defaultRetryPolicy;
}

/**
 * The pause before the attempt that follows the `failure`-th one, or undefined
 * when there is none. The pauses are b, 2b, 4b … up to the maximum.
 */
export function retryPauseMs(policy: RetryPolicy, failure: number): number | undefined {
  const { maxRetries, backoffMs, backoffMaxMs } = policy;
  if (maxRetries !== null && failure > maxRetries) return undefined;
  // 2^52 times anything is beyond every maximum, and still exact.
  return Math.min(backoffMs * 2 ** Math.min(failure - 1, 52), backoffMaxMs);
}

/**
 * Shortens a pause by up to a quarter, so that what failed together does not
 * come back together. `random` is a number below 1.
 */
export function jittered(pauseMs: number, random: number): number {
  return pauseMs - Math.floor((pauseMs * random) / 4);
}
