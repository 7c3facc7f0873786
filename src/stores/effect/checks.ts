import { durationMs } from "../../model/durations.ts";
import type { Duration } from "../../model/durations.ts";
import { effectInvalid } from "../../model/effect-errors.ts";
import type { EffectHolder } from "../../model/effect.ts";
import { HoldfastError } from "../../model/errors.ts";
import { parseOwnerId } from "../../model/prefixed-id.ts";
import type { RetryPolicy } from "../../model/retry-policy.ts";
import { checkedCount, givenObject } from "../../model/shape.ts";
import type { EffectClaim } from "./claim.ts";
import type { EffectRef } from "./effect-row.ts";
import { checkedScope, isName } from "./scope.ts";
import type { EffectScope } from "./scope.ts";

/** What callers may give to effects, checked where it enters. */

const keyCharactersMax = 512;

/** @throws HoldfastError `EFFECT_SCOPE_INVALID`, `EFFECT_INVALID`, `ID_MALFORMED` */
export function checkedEffect(
  scope: EffectScope,
  key: string,
  attempt: number = 1,
): EffectRef {
  const ref = checkedScope(scope);
  if (!isName(key, keyCharactersMax))
    throw effectInvalid(
      "key",
      `a text of 1 to ${keyCharactersMax} characters that is not blank`,
    );
  if (!Number.isSafeInteger(attempt) || attempt < 1)
    throw effectInvalid("attempt", "a whole number from 1 on");
  return { scope: ref, replayKey: key, attempt };
}

/** How often a transient failure is tried again; the pause is 0.1 seconds and doubles, up to a minute, unless told. */
export interface EffectRetry {
  readonly maxRetries: number;
  readonly backoff?: Duration;
  readonly backoffMax?: Duration;
}

const noRetry: RetryPolicy = { maxRetries: 0, backoffMs: 0, backoffMaxMs: 0 };

export function checkedRetryOf(retry: EffectRetry | undefined): RetryPolicy {
  if (retry === undefined) return noRetry;
  const {
    maxRetries,
    backoff = 100,
    backoffMax = "1 min",
  } = givenObject("retry", retry);
  return {
    maxRetries: checkedCount("retry.maxRetries", maxRetries, { max: 1_000 }),
    backoffMs: durationMs(backoff, "retry.backoff"),
    backoffMaxMs: durationMs(backoffMax, "retry.backoffMax"),
  };
}

export function checkedFunction<F>(option: string, given: F): F {
  if (typeof given === "function") return given;
  throw new HoldfastError(
    "OPTION_INVALID",
    `Option ${option} is a function; got something else.`,
    { option },
  );
}

/** A holder as `claim` and `read` show it. @throws HoldfastError `OPTION_INVALID`, `ID_MALFORMED` */
export function checkedHolder(holder: SeenEffectHolder): SeenEffectHolder {
  const given: unknown = holder;
  if (typeof given === "object" && given !== null) {
    const { process, fence } = given as Partial<SeenEffectHolder>;
    if (process === null && Number.isSafeInteger(fence)) return holder;
    if (typeof process === "string" && Number.isSafeInteger(fence)) {
      parseOwnerId(process);
      return holder;
    }
  }
  throw new HoldfastError(
    "OPTION_INVALID",
    "Option observed is a holder as claim returns it. Pass that object as it is.",
    { option: "observed" },
  );
}

/** What of a holder is enough to prove its death. */
export type SeenEffectHolder = Pick<EffectHolder, "process" | "fence">;

/**
 * A claim as a caller shows it: all its parts are there. Whether it counts is
 * for the database to say. Nothing of it is repeated in the error.
 *
 * @throws HoldfastError `OPTION_INVALID`, `EFFECT_SCOPE_INVALID`, `EFFECT_INVALID`
 */
export function checkedEffectClaim(claim: EffectClaim): EffectClaim {
  const given: unknown = claim;
  if (typeof given === "object" && given !== null) {
    const { key, token, fence, expiresAt, dueAt } =
      given as Partial<EffectClaim>;
    if (
      Number.isSafeInteger(key) &&
      Number.isSafeInteger(fence) &&
      Number.isSafeInteger(expiresAt) &&
      (dueAt === null || Number.isSafeInteger(dueAt)) &&
      typeof token === "string"
    ) {
      const { scope } = checkedEffect(
        claim.scope,
        claim.replayKey,
        claim.attempt,
      );
      return { ...claim, scope };
    }
  }
  throw new HoldfastError(
    "OPTION_INVALID",
    "Expected a claim as claim and renew return it. Pass that object as it is.",
    { option: "claim" },
  );
}
