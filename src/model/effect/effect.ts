import type { CheckedText } from "../values/encoded.ts";
import { expiryAt, isLive } from "../lease.ts";
import type { ProvenDeath } from "../lease.ts";
import type { OwnerId } from "../ids/prefixed-id.ts";
import { isSameToken } from "../ids/token.ts";

/** The public view of the worker that holds an effect: everything but its token. */
export interface EffectHolder {
  /** The process whose death ends the claim. With `null` only time ends it. */
  readonly process: OwnerId | null;
  /** The number of the claim on this effect. A holder with a smaller one was overtaken. */
  readonly fence: number;
  readonly claimedAt: number;
  readonly expiresAt: number;
}

/** A claim as it is stored. */
export interface HeldEffect extends EffectHolder {
  readonly token: string;
  /** The latest instant at which its holder claimed or renewed it. */
  readonly renewedAt: number;
}

/** The outcome of an effect: the value that its function returned, or the error that it threw. */
export interface EffectOutcome {
  readonly status: "completed" | "failed";
  /** True for a failure that another attempt may fix. */
  readonly isTransient: boolean;
  readonly value: CheckedText;
}

/** The fields of every recorded effect. */
interface Recorded {
  /** The hash of the envelope. */
  readonly hash: string;
  /** The earliest instant for running or replaying the effect, set by the first caller. */
  readonly dueAt: number | null;
}

/** An effect with its outcome. */
interface SettledState extends Recorded, EffectOutcome {
  readonly kind: "settled";
  readonly settledAt: number;
  /** The token of the claim that settled it. */
  readonly token: string;
}

export type RecordedState =
  | (Recorded & {
      readonly kind: "inProgress";
      /** The last fence that was issued; 0 if there was none. */
      readonly fence: number;
      /** Null when the effect is not held: it waits for its due time, or was released. */
      readonly claim: HeldEffect | null;
    })
  | SettledState;

export type EffectState = { readonly kind: "absent" } | RecordedState;

export interface EffectQuestion {
  readonly effect: {
    readonly hash: string;
    /** The hash that it has if it is older than the payload codec. */
    readonly clearHash?: string | undefined;
    /** The due time for an effect that is not recorded yet. */
    readonly dueAt?: number | null;
  };
  readonly now: number;
  /** True to answer only settled effects and never run one. */
  readonly isStrict?: boolean | undefined;
  /** The token of the request, so that a repeated one gets the same claim or outcome. */
  readonly token?: string | undefined;
  readonly death?: ProvenDeath | undefined;
}

/** The answer to a request for an effect. */
export type EffectDecision =
  /**
   * The caller runs the effect: it is the first, or the previous holder released the effect, let it
   * expire or died.
   */
  | {
      readonly kind: "run";
      readonly fence: number;
      /** The claim that the caller already has. */
      readonly claim?: HeldEffect;
    }
  /** The due time has not come. */
  | { readonly kind: "notDue"; readonly dueAt: number }
  | { readonly kind: "busy"; readonly holder: EffectHolder }
  | SettledState
  /** The key was already used with another envelope. */
  | { readonly kind: "conflict"; readonly hash: string }
  /** Strict replay found nothing, or nothing settled. */
  | { readonly kind: "missing" }
  | { readonly kind: "unfinished" };

/**
 * Decides whether a caller runs an effect, waits for it, or gets the recorded outcome. Another
 * envelope is a conflict in every state of the effect.
 */
export function decideEffect(state: EffectState, asked: EffectQuestion): EffectDecision {
  const { effect, now, isStrict = false } = asked;
  if (state.kind === "absent") {
    if (isStrict) return { kind: "missing" };
    const { dueAt = null } = effect;
    return isLater(dueAt, now) ? { kind: "notDue", dueAt } : { kind: "run", fence: 1 };
  }
  const { hash, dueAt } = state;
  if (hash !== effect.hash && hash !== effect.clearHash) return { kind: "conflict", hash };
  const isOwn = (token: string): boolean =>
    asked.token !== undefined && isSameToken(token, asked.token);
  if (state.kind === "settled") {
    // A value before its due time is possible only when the clock was set back since.
    const isEarly = state.status === "completed" && isLater(dueAt, now) && !isOwn(state.token);
    return isEarly ? { kind: "notDue", dueAt } : state;
  }
  if (isStrict) return { kind: "unfinished" };
  const { claim, fence } = state;
  if (claim !== null && isLive(claim, now)) {
    if (isOwn(claim.token)) return { kind: "run", fence, claim };
    if (!isProvenDead(claim, asked.death)) return { kind: "busy", holder: holderOfEffect(claim) };
  }
  return isLater(dueAt, now) ? { kind: "notDue", dueAt } : { kind: "run", fence: fence + 1 };
}

function isLater(dueAt: number | null, now: number): dueAt is number {
  return dueAt !== null && dueAt > now;
}

/**
 * True when this holder is proven dead. If several callers saw it die, the first changes the fence,
 * so the others saw an older holder.
 */
function isProvenDead(claim: HeldEffect, death: ProvenDeath | undefined): boolean {
  return death?.fence === claim.fence && death.process === claim.process;
}

export function newClaim(
  fence: number,
  now: number,
  given: { readonly process: OwnerId | null; readonly token: string; readonly leaseMs: number },
): HeldEffect {
  const { process, token, leaseMs } = given;
  const expiresAt = expiryAt(now, leaseMs);
  return { process, fence, token, claimedAt: now, renewedAt: now, expiresAt };
}

export function holderOfEffect(claim: HeldEffect): EffectHolder {
  const { process, fence, claimedAt, expiresAt } = claim;
  return { process, fence, claimedAt, expiresAt };
}

/**
 * The reason why a claim is not valid: the effect is gone, or the claim was released, overtaken or
 * expired.
 */
export type EffectLoss = "gone" | "released" | "overtaken" | "expired";

/** The standing of a caller that presents a claim. */
export type ClaimStanding =
  | { readonly kind: "held"; readonly claim: HeldEffect }
  /** This claim settled the effect, and its holder asks again. */
  | SettledState
  | { readonly kind: "lost"; readonly reason: EffectLoss };

/** The proof that a holder holds an effect. */
export interface EffectFence {
  readonly token: string;
  readonly fence: number;
}

export function standingOf(state: EffectState, shown: EffectFence, now: number): ClaimStanding {
  if (state.kind === "absent") return { kind: "lost", reason: "gone" };
  if (state.kind === "settled")
    return isSameToken(state.token, shown.token) ? state : { kind: "lost", reason: "overtaken" };
  const { claim, fence } = state;
  if (claim === null)
    return {
      kind: "lost",
      reason: fence === shown.fence ? "released" : "overtaken",
    };
  if (claim.fence !== shown.fence || !isSameToken(claim.token, shown.token))
    return { kind: "lost", reason: "overtaken" };
  return isLive(claim, now) ? { kind: "held", claim } : { kind: "lost", reason: "expired" };
}
