import type { ExecutionEvent, ExecutionRole, Holder } from "../../../model/execution/event.ts";
import { checkedText } from "../../../model/shape.ts";
import type { Duration } from "../../../model/time/durations.ts";
import { instantAfter } from "../../../model/time/instants.ts";
import { retryPolicyFor, type RetryPolicy } from "../../../model/time/retry-policy.ts";
import type { WaitOptions } from "../../../sql/database.ts";
import { checkedFence, checkedRetry, type Fence } from "../checks.ts";
import type { ExecutionContext } from "../context.ts";

export interface LockOptions extends WaitOptions {
  /** The holder: an executor, and this round of it. */
  readonly holder: Fence;
  /** The length of the lease, from now: extend it before it ends. */
  readonly lease: Duration;
  /** The retry policy. By default activities are retried 5 times and workflows forever. */
  readonly retry?: RetryPolicy;
  readonly codeVersion?: string;
}

export const lockNames = ["holder", "lease", "retry", "codeVersion"] as const;

/** The holder, the end of the lease, and the retry policy for failures. */
export interface LockTerms {
  readonly at: number;
  readonly holder: Holder;
  readonly leaseUntil: number;
  /** Defaults to the retry policy of the role. */
  readonly retry?: RetryPolicy;
  readonly codeVersion: string | null;
  /** Set if the worker runs nothing beside it. */
  readonly alone?: true;
  /** Set if the function wants a convicted run cancelled. */
  readonly whenPoisoned?: "cancel";
}

/** @throws HoldfastError `OPTION_INVALID`, `ID_MALFORMED`, `DURATION_INVALID`, `TIME_OUT_OF_RANGE`, `NAME_INVALID` */
export function lockTerms(
  { database }: ExecutionContext,
  { holder, lease, retry, codeVersion }: Omit<LockOptions, keyof WaitOptions>,
  at: number,
): LockTerms {
  return {
    at,
    holder: { ...checkedFence("holder", holder), owner: database.owner },
    leaseUntil: instantAfter(at, lease, "a lease"),
    ...(retry !== undefined && { retry: checkedRetry(retry) }),
    codeVersion: codeVersion === undefined ? null : checkedText("A code version", codeVersion),
  };
}

/**
 * The terms at the instant at which the body runs, by which it judges and which it records. The
 * call may have waited, or have been prepared long ago.
 */
export function termsNow<T extends LockTerms>({ clock }: ExecutionContext, terms: T): T {
  const lateMs = clock.now() - terms.at;
  if (lateMs <= 0) return terms;
  const { at, leaseUntil } = terms;
  return { ...terms, at: at + lateMs, leaseUntil: leaseUntil + lateMs };
}

export type LockedEvent = Extract<ExecutionEvent, { readonly kind: "locked" }>;

export function lockedBy(terms: LockTerms, role: ExecutionRole): LockedEvent {
  const { holder, leaseUntil, codeVersion, alone, whenPoisoned } = terms;
  const retry = terms.retry ?? retryPolicyFor(role);
  const event: LockedEvent = { kind: "locked", holder, leaseUntil, retry, codeVersion };
  if (alone !== true) return event;
  return { ...event, alone, ...(whenPoisoned && { whenPoisoned }) };
}
