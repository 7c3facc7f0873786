import { durationMs } from "../../model/durations.ts";
import type { Duration } from "../../model/durations.ts";
import {
  effectLeaseLost,
  effectResultUnstorable,
} from "../../model/effect-errors.ts";
import type { EffectEnvelope } from "../../model/effect-envelope.ts";
import type { EffectHolder, EffectOutcome } from "../../model/effect.ts";
import type { Encoded } from "../../model/encoded.ts";
import { newToken } from "../../model/token.ts";
import { checkedText, givenFlag, optionsOf } from "../../model/shape.ts";
import type { WaitOptions } from "../../sql/database.ts";
import { provenDeath } from "../lease/wait.ts";
import { waitNames } from "../given.ts";
import { checkedEffectClaim, checkedHolder } from "./checks.ts";
import type { SeenEffectHolder } from "./checks.ts";
import { claimEffect } from "./claim.ts";
import type { ClaimEffectOutcome, EffectClaim } from "./claim.ts";
import { namesOf } from "./effect-row.ts";
import {
  conflictOf,
  readFailure,
  readValue,
  wantedEffect,
  writtenFailure,
} from "./context.ts";
import type { EffectSurroundings } from "./context.ts";
import { finishEffect, releaseEffect, renewEffect } from "./finish.ts";
import type { EffectScope } from "./scope.ts";
import { readyEffect } from "./steps.ts";

export interface ClaimEffectOptions extends WaitOptions {
  /** Which attempt, 1 unless told. */
  readonly attempt?: number;
  /** For how long: 30 seconds unless told. */
  readonly ttl?: Duration;
  /** Not before so long after it was first asked for. */
  readonly delay?: Duration;
  /** One that nobody can guess, so that a claim whose answer was lost is had again by who repeats it: a new one unless told. */
  readonly token?: string;
  /** A holder that was seen: it is relieved if its process has provably died. */
  readonly observed?: SeenEffectHolder;
}

/** What somebody gets who asks for an effect. */
export type ClaimedEffect =
  | { readonly kind: "claimed"; readonly claim: EffectClaim }
  | { readonly kind: "busy"; readonly holder: EffectHolder }
  | { readonly kind: "notDue"; readonly dueAt: number }
  | { readonly kind: "completed"; readonly value: unknown }
  | {
      readonly kind: "failed";
      readonly error: Error;
      readonly isTransient: boolean;
    };

/** The parts of `execute`, for those who run effects in a way of their own. */
export interface EffectClaims {
  /**
   * Takes an effect to run it, or tells what is recorded or who is at it. In
   * strict replay it only tells what is recorded.
   * @throws HoldfastError `EFFECT_CONFLICT`, `SESSION_NOT_FOUND`, `SESSION_DELETED`, `EFFECT_NOT_RECORDED`, `EFFECT_UNFINISHED`
   */
  claim(
    scope: EffectScope,
    key: string,
    envelope: EffectEnvelope,
    options?: ClaimEffectOptions,
  ): Promise<ClaimedEffect>;
  /** Extends a claim; it never gets shorter. @throws HoldfastError `EFFECT_LEASE_LOST` */
  renew(
    claim: EffectClaim,
    options?: WaitOptions & { readonly ttl?: Duration },
  ): Promise<EffectClaim>;
  /**
   * Records the value of an effect. By the same claim it may be repeated.
   * @throws HoldfastError `EFFECT_LEASE_LOST`, `EFFECT_RESULT_UNSTORABLE`
   */
  complete(
    claim: EffectClaim,
    value: unknown,
    wait?: WaitOptions,
  ): Promise<void>;
  /** Records an error in its place. @throws HoldfastError `EFFECT_LEASE_LOST` */
  fail(
    claim: EffectClaim,
    error: unknown,
    options?: WaitOptions & { readonly isTransient?: boolean },
  ): Promise<void>;
  /** Gives a claim back, so that the next who comes runs the effect; false when it was no longer held. */
  release(claim: EffectClaim, wait?: WaitOptions): Promise<boolean>;
}

export function effectClaims(around: EffectSurroundings): EffectClaims {
  const { database, clock, codec, ttlMs } = around;
  const ttlOf = (ttl: Duration | undefined): number =>
    ttl === undefined ? ttlMs : durationMs(ttl, "ttl");
  const finish = async (
    claim: EffectClaim,
    outcome: EffectOutcome,
    wait: WaitOptions | undefined,
  ): Promise<void> => {
    const input = { claim, now: () => clock.now(), outcome };
    const answer = await database.write(finishEffect, input, wait);
    if (answer.kind === "lost")
      throw effectLeaseLost(namesOf(claim), answer.reason);
  };
  return {
    claim: (scope, key, envelope, options) =>
      claimAsked(around, scope, key, envelope, options),
    async renew(given, options) {
      const { ttl, signal, timeout } = optionsOf(options, [
        ...waitNames,
        "ttl",
      ]);
      const own = checkedEffectClaim(given);
      const input = { claim: own, now: () => clock.now(), ttlMs: ttlOf(ttl) };
      const renewal = await database.write(renewEffect, input, {
        signal,
        timeout,
      });
      if (renewal.kind === "renewed") return renewal.claim;
      const reason = renewal.kind === "over" ? "released" : renewal.reason;
      throw effectLeaseLost(namesOf(own), reason);
    },
    async complete(given, value, wait) {
      const own = checkedEffectClaim(given);
      let encoded: Encoded;
      try {
        encoded = codec.encode(value) as Encoded;
      } catch (cause) {
        throw effectResultUnstorable(namesOf(own), cause);
      }
      const outcome = { status: "completed", isTransient: false } as const;
      await finish(own, { ...outcome, value: encoded }, wait);
    },
    async fail(given, error, options) {
      const known = [...waitNames, "isTransient"] as const;
      const { isTransient: flag, signal, timeout } = optionsOf(options, known);
      const isTransient = givenFlag("isTransient", flag) ?? false;
      const own = checkedEffectClaim(given);
      const value = writtenFailure(around, error);
      const outcome = { status: "failed", isTransient, value } as const;
      await finish(own, outcome, { signal, timeout });
    },
    async release(given, wait) {
      const own = checkedEffectClaim(given);
      const input = { claim: own, now: () => clock.now() };
      return database.write(releaseEffect, input, wait);
    },
  };
}

const claimOptionNames = [
  ...waitNames,
  "attempt",
  "ttl",
  "delay",
  "token",
  "observed",
] as const;

async function claimAsked(
  around: EffectSurroundings,
  scope: EffectScope,
  key: string,
  envelope: EffectEnvelope,
  given: ClaimEffectOptions | undefined,
): Promise<ClaimedEffect> {
  const options = optionsOf(given, claimOptionNames);
  const { database, clock, entropy } = around;
  const { ttl, token, observed, signal, timeout } = options;
  const wanted = wantedEffect(around, scope, key, envelope, options);
  if (around.isStrict) {
    const wait = { signal, timeout };
    const ready = await readyEffect(around, wanted, undefined, wait);
    return readOutcome(around, ready);
  }
  const ttlMs = ttl === undefined ? around.ttlMs : durationMs(ttl, "ttl");
  const death =
    observed === undefined
      ? undefined
      : await provenDeath(database, checkedHolder(observed));
  const outcome = await database.write(
    claimEffect,
    {
      effect: wanted,
      process: database.owner,
      token:
        token === undefined
          ? newToken(entropy)
          : checkedText("The token of a claim", token),
      now: () => clock.now(),
      ttlMs,
      death,
    },
    { signal, timeout },
  );
  if (outcome.kind === "conflict") throw conflictOf(around, wanted, outcome);
  return readOutcome(around, outcome);
}

function readOutcome(
  around: EffectSurroundings,
  outcome: Exclude<ClaimEffectOutcome, { readonly kind: "conflict" }>,
): ClaimedEffect {
  switch (outcome.kind) {
    case "claimed":
      return outcome;
    case "busy":
      return { kind: "busy", holder: outcome.holder };
    case "notDue":
      return { kind: "notDue", dueAt: outcome.dueAt };
    default: {
      const { effect } = outcome;
      return effect.status === "completed"
        ? { kind: "completed", value: readValue(around, effect) }
        : {
            kind: "failed",
            error: readFailure(around, effect),
            isTransient: effect.isTransient,
          };
    }
  }
}
