import { instantOf } from "../../model/time/clock.ts";
import type { Duration } from "../../model/time/durations.ts";
import { effectLeaseLost, effectResultUnstorable } from "../../model/effect/errors.ts";
import {
  standingOf,
  type ClaimStanding,
  type EffectLoss,
  type EffectOutcome,
} from "../../model/effect/effect.ts";
import { HoldfastError, isHoldfastError } from "../../model/errors.ts";
import { extended } from "../../model/lease.ts";
import { givenFlag } from "../../model/shape.ts";
import { isRecord } from "../../model/values/spoken-kind.ts";
import { isSameToken } from "../../model/ids/token.ts";
import type { WaitOptions } from "../../sql/database.ts";
import { afterwards, announce, row, run, storeOperation, type Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { onlyWait, optionsAndWait, type Call } from "../method.ts";
import { isLivingSession } from "../session-row.ts";
import { claimed, type EffectClaim } from "./claim.ts";
import { failureOf, leaseMsOf, readFailure, type EffectContext } from "./context.ts";
import {
  changeEffect,
  effectChanged,
  lockedEffect,
  namesOf,
  settledColumns,
  stateOf,
  type EffectRef,
  type SettledEffect,
} from "./effect-row.ts";
import { aggregateOf, checkedEffect, livingSessionOf } from "./scope.ts";

interface FinishEffect {
  readonly claim: EffectClaim;
  readonly outcome: EffectOutcome;
}

/** @throws HoldfastError `OPTION_INVALID`, `EFFECT_SCOPE_INVALID`, `EFFECT_INVALID`, `EFFECT_RESULT_UNSTORABLE` */
export function givenComplete(
  context: EffectContext,
  claim: EffectClaim,
  value: unknown,
  wait?: WaitOptions,
): Call<FinishEffect> {
  const held = checkedClaim(claim);
  const outcome = outcomeOf(context, held, value);
  return { input: { claim: held, outcome }, wait: onlyWait(wait) };
}

/**
 * The outcome of a function that returned a value.
 * @throws HoldfastError `EFFECT_RESULT_UNSTORABLE`, `VALUE_TOO_LARGE`
 */
export function completedWith(
  { encodeChecked }: Pick<EffectContext, "encodeChecked">,
  effect: EffectRef,
  value: unknown,
): EffectOutcome {
  try {
    return { status: "completed", isTransient: false, value: encodeChecked(value) };
  } catch (cause) {
    if (isHoldfastError(cause) && cause.code === "VALUE_TOO_LARGE") throw cause;
    throw effectResultUnstorable(namesOf(effect), cause);
  }
}

/**
 * The outcome of a function that has run. A value above the limits becomes a failure. Unrecorded,
 * the function and its side effect would run again at every call.
 *
 * @throws HoldfastError `EFFECT_RESULT_UNSTORABLE`
 */
export function outcomeOf(
  context: Pick<EffectContext, "encodeChecked" | "ownCodec" | "database">,
  effect: EffectRef,
  value: unknown,
): EffectOutcome {
  try {
    return completedWith(context, effect, value);
  } catch (error) {
    if (!isHoldfastError(error) || error.code !== "VALUE_TOO_LARGE") throw error;
    return failureOf(context, error, false);
  }
}

/**
 * Throws the recorded failure to a caller that had a value to record, which would take that value
 * for recorded. In the caller's own transaction this rolls back the work done beside it.
 *
 * @throws HoldfastError `VALUE_TOO_LARGE`, `CORRUPT_ROW`, or the error that the claim has recorded
 */
export function refuseFailed(
  context: Pick<EffectContext, "codec" | "database">,
  recorded: SettledEffect,
): void {
  if (recorded.status === "failed") throw readFailure(context, recorded);
}

export interface FailEffectOptions extends WaitOptions {
  /** True if another attempt may succeed; defaults to false. */
  readonly isTransient?: boolean;
}

/** @throws HoldfastError `OPTION_INVALID`, `EFFECT_SCOPE_INVALID`, `EFFECT_INVALID` */
export function givenFail(
  context: EffectContext,
  claim: EffectClaim,
  error: unknown,
  given?: FailEffectOptions,
): Call<FinishEffect> {
  const { options, wait } = optionsAndWait(given, ["isTransient"]);
  const isTransient = givenFlag("isTransient", options.isTransient) ?? false;
  const held = checkedClaim(claim);
  const outcome = failureOf(context, error, isTransient);
  return { input: { claim: held, outcome }, wait };
}

/**
 * Validates that a claim has all its parts. The database decides if the claim is still valid. The
 * error repeats no part of the claim.
 *
 * @throws HoldfastError `OPTION_INVALID`, `EFFECT_SCOPE_INVALID`, `EFFECT_INVALID`
 */
function checkedClaim(claim: EffectClaim): EffectClaim {
  if (isRecord(claim)) {
    const { key, token, fence, expiresAt, dueAt } = claim;
    if (
      Number.isSafeInteger(key) &&
      Number.isSafeInteger(fence) &&
      Number.isSafeInteger(expiresAt) &&
      (dueAt === null || Number.isSafeInteger(dueAt)) &&
      typeof token === "string"
    ) {
      const { scope } = checkedEffect(claim.scope, claim.replayKey, claim.attempt);
      return { ...claim, scope };
    }
  }
  throw new HoldfastError(
    "OPTION_INVALID",
    "Expected a claim as claim and renew return it. Pass that object as it is.",
    { option: "claim" },
  );
}

/**
 * Records the outcome of an effect once, by the holder of its claim. A claim found to have expired
 * is ended for good: its holder was notified, and a clock that is set back must not revive it.
 *
 * @throws HoldfastError `EFFECT_LEASE_LOST`, `SESSION_NOT_FOUND`,
 *   `SESSION_DELETED`, `CORRUPT_ROW`
 */
export const finishEffect = storeOperation("finishEffect", {
  key: (input) => aggregateOf(input.claim),
  *one(context: EffectContext, { claim, outcome }: FinishEffect): Tx<SettledEffect> {
    const { clock } = context;
    const { key } = claim;
    const settledAt = instantOf(() => clock.now());
    const written = yield* writeEnd(claim, outcome, settledAt);
    const then = Math.max(
      settledAt,
      instantOf(() => clock.now()),
    );
    if (written !== undefined) {
      const { token, expiresAt } = written;
      if (isSameToken(token, claim.token) && expiresAt > then) {
        yield* announce(effectChanged, String(key));
        // Not a spread of the outcome, which took 2 of the 44 µs of an effect in memory.
        const { status, isTransient, value } = outcome;
        return { status, isTransient, value, key, settledAt };
      }
      yield* takeBack(key);
    }
    return yield* finishLate(context, claim, then, outcome);
  },
});

/**
 * Finishes an effect in one statement, since the claim is nearly always still held. Only this
 * statement locks the row. After waiting for the lock, the caller reads the time again, and reverts
 * the write, which no reader has seen yet, if the claim has expired. The token is checked the same
 * way. It is compared here in constant time, not by the database.
 */
function* writeEnd(
  { key, fence }: EffectClaim,
  outcome: EffectOutcome,
  now: number,
): Tx<{ readonly token: string; readonly expiresAt: number } | undefined> {
  const to = settledColumns(outcome, now);
  return yield* row(sql`
    UPDATE holdfast_effect SET status = ${to.status}, outcome = ${to.outcome}, checksum = ${to.checksum},
      is_transient = ${to.isTransient}, settled_at = ${now}
    WHERE key = ${key} AND fence = ${fence}
      AND status = 'inProgress' AND expires_at > ${now} AND expires_at > renewed_at
      AND (session = 0 OR ${isOfLivingSession})
    RETURNING token, expires_at AS "expiresAt"`);
}

function* takeBack(key: number): Tx<void> {
  yield* run(sql`
    UPDATE holdfast_effect SET status = 'inProgress', outcome = NULL, checksum = NULL, is_transient = NULL, settled_at = NULL
    WHERE key = ${key}`);
}

const isOfLivingSession = isLivingSession(sql`holdfast_effect.session`);

/**
 * Finds the reason why an effect could not be finished at once. The clock it uses is never earlier
 * than `since`. On Postgres a renewal may have been about to commit; then the effect is finished
 * now.
 */
function* finishLate(
  context: EffectContext,
  claim: EffectClaim,
  since: number,
  outcome: EffectOutcome,
): Tx<SettledEffect> {
  const { now, standing } = yield* lockedStanding(context, claim, since);
  yield* livingSessionOf(claim.scope);
  const { key } = claim;
  switch (standing.kind) {
    case "settled":
      return { ...standing, key };
    case "lost":
      throw yield* lossOf(context, claim, standing.reason, now);
    default:
      yield* changeEffect(key, { ...standing.claim, ...settledColumns(outcome, now) });
      return { ...outcome, key, settledAt: now };
  }
}

/** Locks the effect of a claim, and judges the claim by the time after that. */
function* lockedStanding(
  { clock }: EffectContext,
  claim: EffectClaim,
  since: number = 0,
): Tx<{ readonly now: number; readonly standing: ClaimStanding }> {
  const found = yield* lockedEffect(sql`key = ${claim.key}`);
  const now = Math.max(
    since,
    instantOf(() => clock.now()),
  );
  return { now, standing: standingOf(stateOf(found), claim, now) };
}

/**
 * The error for a lost claim. An expired claim is recorded as ended after the call has rolled back,
 * and before its caller gets the error.
 */
function* lossOf(
  context: EffectContext,
  claim: EffectClaim,
  reason: EffectLoss,
  at: number,
): Tx<HoldfastError> {
  if (reason === "expired") {
    const { database } = context;
    const record = (): Promise<unknown> => database.write(endClaim(context), { claim, at });
    yield* afterwards({
      refused: record,
      // The body caught the error and continued, but its caller has already learned that the claim
      // ended.
      durable: () => void record().catch(() => undefined),
    });
  }
  return effectLeaseLost(namesOf(claim), reason);
}

interface EndClaim {
  readonly claim: EffectClaim;
  /** The instant at which the claim was found to have expired. */
  readonly at: number;
}

/**
 * Records that a claim had expired at an instant, unless it was taken over, settled or renewed in
 * the meantime.
 */
const endClaim = storeOperation("endEffectClaim", {
  key: ({ claim }) => aggregateOf(claim),
  *one(_: EffectContext, { claim: { key, fence }, at }: EndClaim): Tx<void> {
    const ended = yield* run(sql`
      UPDATE holdfast_effect SET renewed_at = ${at}
      WHERE key = ${key} AND fence = ${fence} AND status = 'inProgress' AND expires_at <= ${at} AND renewed_at < ${at}`);
    if (ended > 0) yield* announce(effectChanged, String(key));
  },
});

export interface RenewEffectOptions extends WaitOptions {
  /** The new length, counted from now; defaults to 30 seconds. */
  readonly lease?: Duration;
}

interface RenewEffect {
  readonly claim: EffectClaim;
  readonly leaseMs: number;
}

type EffectRenewal =
  | { readonly kind: "renewed"; readonly claim: EffectClaim }
  /** The holder has settled or released it. */
  | { readonly kind: "over" };

/** @throws HoldfastError `OPTION_INVALID`, `EFFECT_SCOPE_INVALID`, `EFFECT_INVALID`, `DURATION_INVALID` */
export function givenRenew(
  context: EffectContext,
  claim: EffectClaim,
  given?: RenewEffectOptions,
): Call<RenewEffect> {
  const { options, wait } = optionsAndWait(given, ["lease"]);
  const leaseMs = leaseMsOf(context, options.lease);
  return { input: { claim: checkedClaim(claim), leaseMs }, wait };
}

/**
 * Extends a claim, and keeps its token and fence.
 *
 * @throws HoldfastError `EFFECT_LEASE_LOST`, `SESSION_NOT_FOUND`,
 *   `SESSION_DELETED`, `CORRUPT_ROW`
 */
export const renewEffect = storeOperation("renewEffect", {
  key: (input) => aggregateOf(input.claim),
  *one(context: EffectContext, { claim, leaseMs }: RenewEffect): Tx<EffectRenewal> {
    yield* livingSessionOf(claim.scope);
    const { now, standing } = yield* lockedStanding(context, claim);
    if (standing.kind === "settled") return { kind: "over" };
    if (standing.kind === "lost") {
      if (standing.reason === "released") return { kind: "over" };
      throw yield* lossOf(context, claim, standing.reason, now);
    }
    const held = extended(standing.claim, now, leaseMs);
    yield* changeEffect(claim.key, held);
    return { kind: "renewed", claim: claimed(claim, claim, held) };
  },
});

/** @throws HoldfastError `EFFECT_LEASE_LOST` */
export function shownRenewal(
  _: EffectContext,
  renewal: EffectRenewal,
  { claim }: RenewEffect,
): EffectClaim {
  if (renewal.kind === "renewed") return renewal.claim;
  throw effectLeaseLost(namesOf(claim), "released");
}

interface ReleaseEffect {
  readonly claim: EffectClaim;
}

/** @throws HoldfastError `OPTION_INVALID`, `EFFECT_SCOPE_INVALID`, `EFFECT_INVALID` */
export function givenRelease(
  _: EffectContext,
  claim: EffectClaim,
  wait?: WaitOptions,
): Call<ReleaseEffect> {
  return { input: { claim: checkedClaim(claim) }, wait: onlyWait(wait) };
}

/**
 * Releases a claim, so that the next caller runs the effect. Returns false, without an error, when
 * it was no longer held. An expired claim is cleared anyway: its holder was notified, and a clock that
 * is set back must not revive it.
 */
export const releaseEffect = storeOperation("releaseEffect", {
  key: (input) => aggregateOf(input.claim),
  *one(context: EffectContext, { claim }: ReleaseEffect): Tx<boolean> {
    const { standing } = yield* lockedStanding(context, claim);
    const isHeld = standing.kind === "held";
    const isExpired = standing.kind === "lost" && standing.reason === "expired";
    if (isHeld || isExpired) yield* changeEffect(claim.key, { fence: claim.fence });
    return isHeld;
  },
});
