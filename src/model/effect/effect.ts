import type { Encoded } from "../values/encoded.ts";
import { expiryAt, isLive } from "../lease.ts";
import type { ProvenDeath } from "../lease.ts";
import type { OwnerId } from "../ids/prefixed-id.ts";
import { isSameToken } from "../ids/token.ts";

/** What anybody may know of the worker that holds an effect: all but its token. */
export interface EffectHolder {
  /** The process whose death ends the claim; `null` lets only time end it. */
  readonly process: OwnerId | null;
  /** Counts the claims of one effect: a holder with a smaller one was overtaken. */
  readonly fence: number;
  readonly claimedAt: number;
  readonly expiresAt: number;
}

/** A claim as it is stored. */
export interface HeldEffect extends EffectHolder {
  readonly token: string;
  /** The latest instant at which its holder was heard of. */
  readonly renewedAt: number;
}

/** The outcome of an effect: the value that was returned, or the error that was thrown. */
export interface EffectOutcome {
  readonly status: "completed" | "failed";
  /** Of a failure only: another attempt may succeed. */
  readonly isTransient: boolean;
  readonly value: Encoded;
}

/** What all effects that are recorded have. */
interface Recorded {
  /** Of the envelope. */
  readonly hash: string;
  /** Not to be run, or replayed, before; fixed by the first call. */
  readonly dueAt: number | null;
}

export type EffectState =
  | { readonly kind: "absent" }
  | (Recorded & {
      readonly kind: "inProgress";
      /** The last one that was given out; 0 when none ever was. */
      readonly fence: number;
      /** Null when it is not held: it waits for its due time, or was released. */
      readonly claim: HeldEffect | null;
    })
  | (Recorded & {
      readonly kind: "settled";
      readonly outcome: EffectOutcome;
      readonly settledAt: number;
      /** Of the claim that settled it. */
      readonly token: string;
    });

export interface EffectQuestion {
  readonly hash: string;
  readonly now: number;
  /** Never run it: only what is settled is answered. */
  readonly isStrict?: boolean | undefined;
  /** Of the claim that is asked for, so that asking twice is asking once. */
  readonly token?: string | undefined;
  /** For an effect that is not recorded yet. */
  readonly dueAt?: number | null | undefined;
  readonly death?: ProvenDeath | undefined;
}

/** What a caller gets that asks for an effect. */
export type EffectDecision =
  /** The first one: it runs the effect. */
  | {
      readonly kind: "claim";
      readonly fence: number;
      readonly dueAt: number | null;
    }
  /** The holder before gave up, ran out of time or died: the caller runs the effect again, and the due time stays. */
  | {
      readonly kind: "takeover";
      readonly fence: number;
      readonly dueAt: number | null;
    }
  /** It has the claim already. */
  | { readonly kind: "reenter"; readonly claim: HeldEffect }
  /** It is not run before its due time. */
  | { readonly kind: "notDue"; readonly dueAt: number }
  | { readonly kind: "busy"; readonly holder: EffectHolder }
  | { readonly kind: "replay"; readonly outcome: EffectOutcome }
  | { readonly kind: "failed"; readonly outcome: EffectOutcome }
  /** The key was used before for something else. */
  | { readonly kind: "conflict"; readonly recordedHash: string }
  /** Strict replay: there is nothing, or nothing settled. */
  | { readonly kind: "missing" }
  | { readonly kind: "unfinished" };

/**
 * Decides whether a caller runs an effect, waits for it, or gets what is
 * recorded. Another envelope is a conflict whatever the state of the effect.
 */
export function decideEffect(state: EffectState, asked: EffectQuestion): EffectDecision {
  const { now, isStrict = false } = asked;
  if (state.kind === "absent") {
    if (isStrict) return { kind: "missing" };
    const dueAt = asked.dueAt ?? null;
    return isLater(dueAt, now) ? { kind: "notDue", dueAt } : { kind: "claim", fence: 1, dueAt };
  }
  if (state.hash !== asked.hash) return { kind: "conflict", recordedHash: state.hash };
  const { dueAt } = state;
  if (state.kind === "settled") {
    const { outcome } = state;
    if (outcome.status === "failed") return { kind: "failed", outcome };
    // Only when the clock was set back since.
    if (isLater(dueAt, now)) return { kind: "notDue", dueAt };
    return { kind: "replay", outcome };
  }
  if (isStrict) return { kind: "unfinished" };
  const { claim, fence } = state;
  if (claim !== null && isLive(claim, now)) {
    if (asked.token !== undefined && isSameToken(claim.token, asked.token))
      return { kind: "reenter", claim };
    if (!isProvenDead(claim, asked.death)) return { kind: "busy", holder: holderOfEffect(claim) };
  }
  if (isLater(dueAt, now)) return { kind: "notDue", dueAt };
  return { kind: "takeover", fence: fence + 1, dueAt };
}

function isLater(dueAt: number | null, now: number): dueAt is number {
  return dueAt !== null && dueAt > now;
}

/** Of several who saw a holder die the first changes the fence, and the others have seen another one. */
function isProvenDead(claim: HeldEffect, death: ProvenDeath | undefined): boolean {
  return death?.fence === claim.fence && death.process === claim.process;
}

export function newClaim(
  { fence }: { readonly fence: number },
  given: {
    readonly process: OwnerId | null;
    readonly token: string;
    readonly now: number;
    readonly leaseMs: number;
  },
): HeldEffect {
  const { process, token, now, leaseMs } = given;
  return {
    process,
    fence,
    token,
    claimedAt: now,
    renewedAt: now,
    expiresAt: expiryAt(now, leaseMs),
  };
}

export function holderOfEffect(claim: HeldEffect): EffectHolder {
  const { process, fence, claimedAt, expiresAt } = claim;
  return { process, fence, claimedAt, expiresAt };
}

/** Why a claim does not hold: the effect is gone, or the claim was released, overtaken or has run out. */
export type EffectLoss = "gone" | "released" | "overtaken" | "expired";

/** Where a caller stands that shows a claim. */
export type ClaimStanding =
  | { readonly kind: "held"; readonly claim: HeldEffect }
  /** By this very claim: its holder asks again. */
  | {
      readonly kind: "settled";
      readonly outcome: EffectOutcome;
      readonly settledAt: number;
    }
  | { readonly kind: "lost"; readonly reason: EffectLoss };

/** What a holder shows to prove that an effect is its own. */
export interface EffectFence {
  readonly token: string;
  readonly fence: number;
}

export function standingOf(state: EffectState, shown: EffectFence, now: number): ClaimStanding {
  if (state.kind === "absent") return { kind: "lost", reason: "gone" };
  if (state.kind === "settled") {
    const { outcome, settledAt } = state;
    return isSameToken(state.token, shown.token)
      ? { kind: "settled", outcome, settledAt }
      : { kind: "lost", reason: "overtaken" };
  }
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
