import type { ExecutionRole } from "../execution/event.ts";

/** The rules for retrying failures. */
export interface RetryPolicy {
  /** The number of attempts after the first; null retries forever. */
  readonly maxRetries: number | null;
  /** The pause before the first retry. Each further retry doubles it. */
  readonly backoffMs: number;
  /** The longest pause. */
  readonly backoffMaxMs: number;
}

/** The default for activities. */
const defaultRetryPolicy: RetryPolicy = {
  maxRetries: 5,
  backoffMs: 100,
  backoffMaxMs: 60_000,
};

/** The policy of workflows. Their failures are the machine's, so retries never end. */
export const unlimitedRetryPolicy: RetryPolicy = {
  ...defaultRetryPolicy,
  maxRetries: null,
};

export function retryPolicyFor(role: ExecutionRole): RetryPolicy {
  return role === "workflow" ? unlimitedRetryPolicy : defaultRetryPolicy;
}

/**
 * Returns the pause after the `failure`-th failure, or undefined when no attempt is left. The
 * pauses are b, 2b, 4b … up to the maximum.
 */
export function retryPauseMs(policy: RetryPolicy, failure: number): number | undefined {
  const { maxRetries, backoffMs, backoffMaxMs } = policy;
  if (maxRetries !== null && failure > maxRetries) return undefined;
  // 2^52 times anything is beyond every maximum, and still exact.
  return Math.min(backoffMs * 2 ** Math.min(failure - 1, 52), backoffMaxMs);
}

/**
 * Shortens a pause by up to a quarter, so that runs that failed together do not retry together.
 * `random` is a number below 1.
 */
export function jittered(pauseMs: number, random: number): number {
  return pauseMs - Math.floor((pauseMs * random) / 4);
}
