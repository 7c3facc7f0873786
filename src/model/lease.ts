import { HoldfastError } from "./errors.ts";
import type { OwnerId } from "./ids/prefixed-id.ts";
import type { SessionId } from "./ids/session-id.ts";
import { isSameToken } from "./ids/token.ts";

/**
 * The claimant of a lease: the host's own name and its current incarnation. Only the process can be
 * proven dead.
 */
export interface LeaseOwner {
  readonly owner: string;
  readonly incarnation: string;
  readonly process: OwnerId | null;
}

/** The proof that a holder still holds a session's lease. */
export interface LeaseFence {
  readonly owner: string;
  readonly incarnation: string;
  readonly token: string;
  /** A number that only grows. A holder with a smaller fence was overtaken. */
  readonly fence: number;
}

/** The public view of a lease: everything but its token. */
export interface LeaseHolder extends LeaseOwner {
  readonly fence: number;
  readonly claimedAt: number;
  readonly expiresAt: number;
}

/** A record of how a session's earlier leases ended. */
interface EarlierLeases {
  /** The last fence that was issued; 0 if there was none. */
  readonly fence: number;
  /**
   * The earlier leases that their holders released, one bit each. The lowest bit is the latest of
   * them.
   */
  readonly givenBack: number;
}

/** A lease as it is stored. */
export interface HeldLease extends LeaseHolder, LeaseFence, EarlierLeases {
  /** The latest instant at which the holder renewed the lease or acquired it. */
  readonly renewedAt: number;
}

export type LeaseState =
  | ({ readonly kind: "free" } & EarlierLeases)
  | { readonly kind: "held"; readonly lease: HeldLease };

/** The answer to a request for a lease. */
export type LeaseDecision =
  | { readonly kind: "acquire"; readonly fence: number }
  /** The same incarnation asks again and already has the lease. */
  | { readonly kind: "reenter"; readonly lease: HeldLease }
  /** The lease is taken from a holder whose process is proven dead. */
  | { readonly kind: "reclaim"; readonly fence: number }
  | { readonly kind: "busy"; readonly holder: LeaseHolder };

/** A previous holder whose process is proven dead. */
export interface ProvenDeath {
  readonly fence: number;
  readonly process: OwnerId;
}

/**
 * Decides a request for a lease. A live lease stays with its holder, unless exactly that holder is
 * proven dead. If several claimants saw it die, the first changes the fence, so the others saw an
 * older holder.
 */
export function decideLease(
  state: LeaseState,
  owner: LeaseOwner,
  now: number,
  death?: ProvenDeath,
): LeaseDecision {
  if (state.kind === "free") return { kind: "acquire", fence: state.fence + 1 };
  const { lease } = state;
  if (!isLive(lease, now)) return { kind: "acquire", fence: lease.fence + 1 };
  if (isSameIncarnation(lease, owner)) return { kind: "reenter", lease };
  if (death?.fence === lease.fence && death.process === lease.process)
    return { kind: "reclaim", fence: lease.fence + 1 };
  return { kind: "busy", holder: holderOf(lease) };
}

/**
 * True while a lease keeps others away. The lease is never judged at an instant before its last
 * renewal, so a clock that is set back does not revive it.
 */
export function isLive(lease: Pick<HeldLease, "expiresAt" | "renewedAt">, now: number): boolean {
  return lease.expiresAt > Math.max(now, lease.renewedAt);
}

/**
 * True for a lease that has expired by `now`, while the stored row does not say so yet. A caller
 * that sees this records it. Otherwise a clock that is set back would show the lease as held again.
 */
export function isUnrecordedEnd(
  lease: Pick<HeldLease, "expiresAt" | "renewedAt">,
  now: number,
): boolean {
  return lease.expiresAt > lease.renewedAt && !isLive(lease, now);
}

/** Returns the renewed lease. It never gets shorter, even if the clock was set back. */
export function extended<L extends Pick<HeldLease, "expiresAt" | "renewedAt">>(
  lease: L,
  now: number,
  leaseMs: number,
): L {
  return {
    ...lease,
    renewedAt: Math.max(lease.renewedAt, now),
    expiresAt: Math.max(lease.expiresAt, expiryAt(now, leaseMs)),
  };
}

/** Returns the lease after its incarnation asked again, perhaps from another process. */
export function reentered(
  lease: HeldLease,
  owner: LeaseOwner,
  now: number,
  leaseMs: number,
): HeldLease {
  return {
    ...extended(lease, now, leaseMs),
    // Two processes share the lease, so the death of one proves nothing.
    process: owner.process === lease.process ? lease.process : null,
  };
}

/** The last instant that a Date can show. */
const instantMax = 8.64e15;

export function expiryAt(now: number, leaseMs: number): number {
  return Math.min(now + leaseMs, instantMax);
}

/**
 * The number of earlier leases that are remembered. Far fewer claimants take the lease between two
 * renewals of a lost one.
 */
const earlierLeasesMax = 31;

/** Returns the releases that the next lease remembers. A free lease was released. */
export function givenBackBefore(state: LeaseState): number {
  const bits = state.kind === "free" ? state.givenBack : state.lease.givenBack;
  return (bits * 2 + (state.kind === "free" ? 1 : 0)) % 2 ** earlierLeasesMax;
}

function wasGivenBack({ fence: last, givenBack }: EarlierLeases, fence: number): boolean {
  const place = last - fence - 1;
  if (place < 0 || place >= earlierLeasesMax) return false;
  return Math.floor(givenBack / 2 ** place) % 2 === 1;
}

/**
 * The reason why a fence is not valid: none was passed, or its lease was released, overtaken or
 * expired.
 */
export type LeaseLoss = "missing" | "released" | "overtaken" | "expired";

/** Returns the reason why a fence does not hold the lease, or undefined when it does. */
export function lossOf(
  state: LeaseState,
  fence: LeaseFence | undefined,
  now: number,
): LeaseLoss | undefined {
  if (!isFence(fence)) return "missing";
  const isOver = state.kind === "free" || !isSameLease(state.lease, fence);
  if (isOver) return endOf(state, fence);
  return isLive(state.lease, now) ? undefined : "expired";
}

/** Returns how a lease ended that the session no longer has. */
function endOf(state: LeaseState, { fence }: LeaseFence): LeaseLoss {
  if (state.kind === "free" && fence === state.fence) return "released";
  const last = state.kind === "free" ? state : state.lease;
  return wasGivenBack(last, fence) ? "released" : "overtaken";
}

/** Checks that all parts of a fence are present, since JavaScript passes anything. */
export function isFence(given: unknown): given is LeaseFence {
  if (typeof given !== "object" || given === null) return false;
  const { owner, incarnation, token, fence } = given as Partial<LeaseFence>;
  return (
    typeof owner === "string" &&
    typeof incarnation === "string" &&
    typeof token === "string" &&
    Number.isSafeInteger(fence)
  );
}

export function isSameLease(lease: HeldLease, fence: LeaseFence): boolean {
  return (
    isFence(fence) &&
    lease.fence === fence.fence &&
    isSameIncarnation(lease, fence) &&
    isSameToken(lease.token, fence.token)
  );
}

function isSameIncarnation(
  a: Pick<LeaseOwner, "owner" | "incarnation">,
  b: Pick<LeaseOwner, "owner" | "incarnation">,
): boolean {
  return a.owner === b.owner && a.incarnation === b.incarnation;
}

export function holderOf(lease: HeldLease): LeaseHolder {
  const { owner, incarnation, process, fence, claimedAt, expiresAt } = lease;
  return { owner, incarnation, process, fence, claimedAt, expiresAt };
}

const whatHappened: Readonly<Record<LeaseLoss, string>> = {
  missing: "the call has no lease",
  released: "the lease was released",
  overtaken: "another holder has the lease",
  expired: "the lease expired",
};

export function leaseLost(
  session: SessionId,
  reason: LeaseLoss,
  options?: { readonly cause?: unknown },
): HoldfastError {
  return new HoldfastError(
    "LEASE_LOST",
    `Session "${session}": ${whatHappened[reason]}, so nothing was changed. ` +
      "Stop this turn; acquire the lease again, reload the session and start from there.",
    { session, reason },
    options,
  );
}

/** The same error for a process and its worker. */
export function processLeaseLost(
  id: string,
  reason: LeaseLoss,
  options?: { readonly cause?: unknown },
): HoldfastError {
  return new HoldfastError(
    "PROCESS_LEASE_LOST",
    `Process "${id}": ${whatHappened[reason]}, so nothing was changed. ` +
      "Stop this work; the holder of the lease continues it.",
    { id, reason },
    options,
  );
}
