import { instantOf } from "../../model/clock.ts";
import type { Now } from "../../model/clock.ts";
import { standingOf } from "../../model/effect.ts";
import type { EffectLoss, EffectOutcome } from "../../model/effect.ts";
import { extended } from "../../model/lease.ts";
import { isSameToken } from "../../model/token.ts";
import { announce, row, run, plainOperation } from "../../sql/operation.ts";
import type { Operation, Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { isLivingSession } from "../session/session-row.ts";
import { claimed, writeClaim } from "./claim.ts";
import type { EffectClaim } from "./claim.ts";
import {
  aggregateOf,
  corruptEffect,
  lockedEffect,
  stateOf,
} from "./effect-row.ts";
import { livingSessionOf } from "./scope.ts";
import { effectChanged } from "./topics.ts";

/** What somebody does who shows a claim. */
export interface ShownClaim {
  readonly claim: EffectClaim;
  readonly now: Now;
}

interface Lost {
  readonly kind: "lost";
  readonly reason: EffectLoss;
}

export interface FinishEffect extends ShownClaim {
  readonly outcome: EffectOutcome;
}

export type Finished =
  | { readonly kind: "finished"; readonly settledAt: number }
  /** By this claim and before: what was recorded then counts. */
  | {
      readonly kind: "already";
      readonly outcome: EffectOutcome;
      readonly settledAt: number;
    }
  | Lost;

/**
 * Records what an effect came to, once, by the one who holds its claim. A
 * claim that is found to have run out is ended for good: its holder was told
 * so, and a clock that is set back must not let it pass later.
 *
 * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`, `CORRUPT_ROW`
 */
export const finishEffect: Operation<FinishEffect, Finished> = plainOperation(
  "finishEffect",
  {
    key: (input: FinishEffect) => aggregateOf(input.claim),
    *one({ claim, now, outcome }) {
      const settledAt = instantOf(now);
      const written = yield* writtenEnd(claim, outcome, settledAt);
      const then = Math.max(settledAt, instantOf(now));
      if (written !== undefined) {
        const { token, expires_at: expiresAt } = written;
        if (isSameToken(token, claim.token) && expiresAt > then) {
          yield* announce(effectChanged, String(claim.key));
          return { kind: "finished", settledAt };
        }
        yield* takeBack(claim.key);
      }
      return yield* finishedLate(claim, now, then, outcome);
    },
  },
);

/**
 * Finishes an effect in one statement, since nearly always it is held. Only
 * with this is its row locked: who waited for that asks the time again, and
 * takes back what nobody has seen yet. So with the token, which is compared
 * here and not by the database, in a time that tells nothing.
 */
function* writtenEnd(
  { key, fence }: EffectClaim,
  { status, value, isTransient }: EffectOutcome,
  now: number,
): Tx<{ readonly token: string; readonly expires_at: number } | undefined> {
  return yield* row(sql`
    UPDATE holdfast_effect SET status = ${status}, outcome = ${value},
      is_transient = ${isTransient ? 1 : 0}, settled_at = ${now}
    WHERE key = ${key} AND fence = ${fence}
      AND status = 'inProgress' AND expires_at > ${now} AND expires_at > renewed_at
      AND (session = 0 OR ${isOfLivingSession})
    RETURNING token, expires_at`);
}

function* takeBack(key: number): Tx<void> {
  yield* run(sql`
    UPDATE holdfast_effect SET status = 'inProgress', outcome = NULL, is_transient = NULL, settled_at = NULL
    WHERE key = ${key}`);
}

const isOfLivingSession = isLivingSession(sql`holdfast_effect.session`);

/**
 * Why an effect could not be finished at once, by a clock that was not before
 * an instant. On Postgres a renewal may have been about to commit: then it can.
 */
function* finishedLate(
  claim: EffectClaim,
  tell: Now,
  since: number,
  outcome: EffectOutcome,
): Tx<Finished> {
  yield* livingSessionOf(claim.scope);
  const state = stateOf(yield* lockedEffect(claim.key));
  const now = Math.max(since, instantOf(tell));
  const standing = standingOf(state, claim, now);
  switch (standing.kind) {
    case "settled":
      return {
        kind: "already",
        outcome: standing.outcome,
        settledAt: standing.settledAt,
      };
    case "lost":
      return yield* ended(claim, standing, now);
    default:
      if ((yield* writtenEnd(claim, outcome, now)) === undefined)
        throw corruptEffect(claim.key, "is held and cannot be finished");
      yield* announce(effectChanged, String(claim.key));
      return { kind: "finished", settledAt: now };
  }
}

export interface RenewEffect extends ShownClaim {
  readonly ttlMs: number;
}

export type EffectRenewal =
  | { readonly kind: "renewed"; readonly claim: EffectClaim }
  /** Its holder has settled it, or given it back. */
  | { readonly kind: "over" }
  | Lost;

/**
 * Extends a claim, and keeps its token and fence.
 *
 * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`, `CORRUPT_ROW`
 */
export const renewEffect: Operation<RenewEffect, EffectRenewal> =
  plainOperation("renewEffect", {
    key: (input: RenewEffect) => aggregateOf(input.claim),
    *one({ claim, now: tell, ttlMs }) {
      yield* livingSessionOf(claim.scope);
      const state = stateOf(yield* lockedEffect(claim.key));
      const now = instantOf(tell);
      const standing = standingOf(state, claim, now);
      if (standing.kind === "settled") return { kind: "over" };
      if (standing.kind === "lost" && standing.reason === "released")
        return { kind: "over" };
      if (standing.kind === "lost") return yield* ended(claim, standing, now);
      const held = extended(standing.claim, now, ttlMs);
      yield* writeClaim(claim.key, held);
      return {
        kind: "renewed",
        claim: claimed(claim.scope, claim, claim.key, held, claim.dueAt),
      };
    },
  });

function* ended(claim: EffectClaim, lost: Lost, now: number): Tx<Lost> {
  if (lost.reason === "expired") {
    yield* run(sql`
      UPDATE holdfast_effect SET renewed_at = ${now} WHERE key = ${claim.key} AND renewed_at < ${now}`);
    yield* announce(effectChanged, String(claim.key));
  }
  return lost;
}

/** Gives a claim back, so that the next who comes runs the effect; false, and no error, when it was no longer held. */
export const releaseEffect: Operation<ShownClaim, boolean> = plainOperation(
  "releaseEffect",
  {
    key: (input: ShownClaim) => aggregateOf(input.claim),
    *one({ claim, now }) {
      const state = stateOf(yield* lockedEffect(claim.key));
      const standing = standingOf(state, claim, instantOf(now));
      const isOwn =
        standing.kind === "held" ||
        (standing.kind === "lost" && standing.reason === "expired");
      if (!isOwn) return false;
      yield* run(sql`
        UPDATE holdfast_effect SET process = NULL, token = NULL, claimed_at = NULL, renewed_at = NULL,
          expires_at = NULL
        WHERE key = ${claim.key}`);
      yield* announce(effectChanged, String(claim.key));
      return true;
    },
  },
);
