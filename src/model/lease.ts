import { HoldfastError } from "./errors.ts";
import type { OwnerId } from "./ids/prefixed-id.ts";
import type { SessionId } from "./ids/session-id.ts";
import { isSameToken } from "./ids/token.ts";

/** Who wants a lease: a host's own name, and this start of it. The process is what can be proven dead. */
export interface LeaseOwner {
  readonly owner: string;
  readonly incarnation: string;
  readonly process: OwnerId | null;
}

/** What a holder shows to prove that it still holds a session's lease. */
export interface LeaseFence {
  readonly owner: string;
  readonly incarnation: string;
  readonly token: string;
  /** Only grows: a holder with a smaller one was overtaken. */
  readonly fence: number;
}

/** What anybody may know of a lease: all but its token. */
export interface LeaseHolder extends LeaseOwner {
  readonly fence: number;
  readonly claimedAt: number;
  readonly expiresAt: number;
}

/** How the leases of a session ended that came before. */
interface EarlierLeases {
  /** The last fence that was given out; 0 when none ever was. */
  readonly fence: number;
  /** Which of the leases before that one were released by their holders: a bit for each, the last one lowest. */
  readonly givenBack: number;
}

/** A lease as it is stored. */
export interface HeldLease extends LeaseHolder, LeaseFence, EarlierLeases {
  /** The latest instant at which its holder was heard of. */
  readonly renewedAt: number;
}

export type LeaseState =
  | ({ readonly kind: "free" } & EarlierLeases)
  | { readonly kind: "held"; readonly lease: HeldLease };

/** What a caller that asks for a lease gets. */
export type LeaseDecision =
  | { readonly kind: "acquire"; readonly fence: number }
  /** The same incarnation again: it has the lease already. */
  | { readonly kind: "reenter"; readonly lease: HeldLease }
  /** Taken from a holder that has provably died. */
  | { readonly kind: "reclaim"; readonly fence: number }
  | { readonly kind: "busy"; readonly holder: LeaseHolder };

/** A holder that was seen, and whose process was then proven dead. */
export interface ProvenDeath {
  readonly fence: number;
  readonly process: OwnerId;
}

/**
 * Decides who gets a lease. A live lease stays with its holder, unless that is
 * the very one that was proven dead: of several who saw it die the first
 * changes the fence, and the others have seen another holder.
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
 * Whether a lease keeps others away. It cannot be older than the last time
 * its holder was heard of, so a clock that is set back does not revive it.
 */
export function isLive(lease: Pick<HeldLease, "expiresAt" | "renewedAt">, now: number): boolean {
  return lease.expiresAt > Math.max(now, lease.renewedAt);
}

/**
 * Whether a lease is over by `now` and nothing stored says so yet: a caller that
 * learns of it records it, so that a clock that is set back does not show it
 * as held again.
 */
export function isUnrecordedEnd(
  lease: Pick<HeldLease, "expiresAt" | "renewedAt">,
  now: number,
): boolean {
  return lease.expiresAt > lease.renewedAt && !isLive(lease, now);
}

/** The lease after its holder was heard of again. It never gets shorter, whatever the clock says. */
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

/** The lease of one incarnation that was asked for again, perhaps by another process. */
export function reentered(
  lease: HeldLease,
  owner: LeaseOwner,
  now: number,
  leaseMs: number,
): HeldLease {
  return {
    ...extended(lease, now, leaseMs),
    // Two processes that share a lease: the death of one proves nothing.
    process: owner.process === lease.process ? lease.process : null,
  };
}

/** The last instant a Date can show. */
const instantMax = 8.64e15;

export function expiryAt(now: number, leaseMs: number): number {
  return Math.min(now + leaseMs, instantMax);
}

/** So many are remembered: far more than take a lease between two renewals of one that was lost. */
const earlierLeasesMax = 31;

/** What the next lease remembers of those before it. One that is free was released. */
export function givenBackBefore(state: LeaseState): number {
  const bits = state.kind === "free" ? state.givenBack : state.lease.givenBack;
  return (bits * 2 + (state.kind === "free" ? 1 : 0)) % 2 ** earlierLeasesMax;
}

function wasGivenBack({ fence: last, givenBack }: EarlierLeases, fence: number): boolean {
  const place = last - fence - 1;
  if (place < 0 || place >= earlierLeasesMax) return false;
  return Math.floor(givenBack / 2 ** place) % 2 === 1;
}

/** Why a fence does not hold: none was shown, or its lease was released, overtaken or has run out. */
export type LeaseLoss = "missing" | "released" | "overtaken" | "expired";

/** Why a fence does not hold a lease; undefined when it does. */
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

/** What became of a lease that is no longer the session's. */
function endOf(state: LeaseState, { fence }: LeaseFence): LeaseLoss {
  if (state.kind === "free" && fence === state.fence) return "released";
  const last = state.kind === "free" ? state : state.lease;
  return wasGivenBack(last, fence) ? "released" : "overtaken";
}

/** Whether all parts of a fence are there; JavaScript lets anything through. */
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
  missing: "no lease was shown",
  released: "the lease was released",
  overtaken: "another holder has the lease",
  expired: "the lease has run out",
};

export function leaseLost(
  session: SessionId,
  reason: LeaseLoss,
  options?: { readonly cause?: unknown },
): HoldfastError {
  return new HoldfastError(
    "LEASE_LOST",
    `Session "${session}": ${whatHappened[reason]}, so nothing was changed. ` +
      "Stop this turn; acquire the lease again and start from what the session holds then.",
    { session, reason },
    options,
  );
}

/** The same for a process and its worker. */
export function processLeaseLost(
  id: string,
  reason: LeaseLoss,
  options?: { readonly cause?: unknown },
): HoldfastError {
  return new HoldfastError(
    "PROCESS_LEASE_LOST",
    `Process "${id}": ${whatHappened[reason]}, so nothing was changed. ` +
      "Stop this work; the holder of the lease goes on with it.",
    { id, reason },
    options,
  );
}
