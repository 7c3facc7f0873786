import { checkedCount, optionsOf } from "../../model/shape.ts";
import { durationMs, type Duration } from "../../model/time/durations.ts";
import { retryPolicyFor, type RetryPolicy } from "../../model/time/retry-policy.ts";

/** The retry rules of a step or an activity. */
export interface RetryOptions {
  /** Attempts after the first; defaults to 5. */
  readonly maxRetries?: number;
  /** The pause before the first retry; it doubles with each retry. Defaults to 100 ms. */
  readonly backoff?: Duration;
  /** The longest pause; defaults to a minute. */
  readonly maxBackoff?: Duration;
}

/** @throws HoldfastError `OPTION_INVALID`, `DURATION_INVALID` */
export function retryPolicyOf(given: RetryOptions | undefined): RetryPolicy {
  const usual = retryPolicyFor("activity");
  if (given === undefined) return usual;
  const { maxRetries, backoff, maxBackoff } = optionsOf<RetryOptions>(given, [
    "maxRetries",
    "backoff",
    "maxBackoff",
  ]);
  const backoffMs = backoff === undefined ? usual.backoffMs : durationMs(backoff, "backoff");
  return {
    maxRetries:
      maxRetries === undefined ? usual.maxRetries : checkedCount("maxRetries", maxRetries),
    backoffMs,
    backoffMaxMs:
      maxBackoff === undefined
        ? Math.max(usual.backoffMaxMs, backoffMs)
        : durationMs(maxBackoff, "maxBackoff"),
  };
}
