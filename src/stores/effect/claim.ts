import { instantOf } from "../../model/clock.ts";
import type { Now } from "../../model/clock.ts";
import { decideEffect, newClaim } from "../../model/effect.ts";
import type {
  EffectDecision,
  EffectFence,
  EffectHolder,
  EffectOutcome,
  EffectQuestion,
  HeldEffect,
} from "../../model/effect.ts";
import type { Encoded } from "../../model/encoded.ts";
import { effectTitle } from "../../model/effect-errors.ts";
import { HoldfastError, unreachable } from "../../model/errors.ts";
import type { ProvenDeath } from "../../model/lease.ts";
import type { OwnerId } from "../../model/prefixed-id.ts";
import { lockRow } from "../../sql/dialect.ts";
import { row, run, plainOperation } from "../../sql/operation.ts";
import type { Operation, Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import {
  aggregateOf,
  corruptEffect,
  effectColumns,
  namesOf,
  stateOf,
  whichEffect,
} from "./effect-row.ts";
import type { EffectRef, EffectRow, WantedEffect } from "./effect-row.ts";
import { keptScope } from "./scope.ts";
import type { EffectScopeRef } from "./scope.ts";

export interface ClaimEffect {
  readonly effect: WantedEffect;
  /** Whose death ends the claim; `null` lets only time end it. */
  readonly process: OwnerId | null;
  /** For a new claim; one that shows the token of the claim there is has it already. */
  readonly token: string;
  readonly now: Now;
  readonly ttlMs: number;
  /** A holder that was seen, and whose process has provably died since. */
  readonly death?: ProvenDeath | undefined;
}

/** The right to run an effect, in the hands of the one who has it. */
export interface EffectClaim extends EffectRef, EffectFence {
  readonly key: number;
  readonly claimedAt: number;
  readonly expiresAt: number;
  readonly dueAt: number | null;
}

/** An effect that is done with. */
export interface SettledEffect extends EffectOutcome {
  readonly key: number;
  readonly settledAt: number;
}

export type ClaimEffectOutcome =
  | { readonly kind: "claimed"; readonly claim: EffectClaim }
  | {
      readonly kind: "busy";
      readonly key: number;
      readonly holder: EffectHolder;
    }
  | {
      readonly kind: "notDue";
      readonly key: number;
      readonly dueAt: number;
    }
  | { readonly kind: "settled"; readonly effect: SettledEffect }
  /** The key was used before for something else, which is this. */
  | {
      readonly kind: "conflict";
      readonly key: number;
      readonly hash: string;
      readonly envelope: Encoded;
    };

/**
 * Takes an effect to run it, or tells what is recorded or who is at it.
 *
 * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`, `CORRUPT_ROW`
 */
export const claimEffect: Operation<ClaimEffect, ClaimEffectOutcome> =
  plainOperation("claimEffect", {
    key: (input: ClaimEffect) => aggregateOf(input.effect),
    *one(input) {
      const { effect } = input;
      const { dueAt } = effect;
      const { session, scope } = yield* keptScope(effect.scope);
      const given = { ...input, now: instantOf(input.now) };
      const { now } = given;
      const first = decideEffect({ kind: "absent" }, questionOf(given));
      const claim = first.kind === "claim" ? newClaim(first, given) : undefined;
      const key = yield* insertEffect(session, given, claim);
      if (key !== undefined)
        return claim === undefined
          ? { kind: "notDue", key, dueAt: dueAt ?? now }
          : {
              kind: "claimed",
              claim: claimed(scope, effect, key, claim, dueAt),
            };
      const found = yield* row<EffectRow>(sql`
        SELECT ${effectColumns} FROM holdfast_effect WHERE ${whichEffect(session, effect)} ${lockRow}`);
      if (found === undefined) throw removedMeanwhile(effect);
      // Whoever had it locked may have taken longer than its claim lasts.
      const then = { ...input, now: instantOf(input.now) };
      return yield* claimRecorded(scope, found, then);
    },
  });

/** The same at an instant. */
type ClaimEffectAt = Omit<ClaimEffect, "now"> & { readonly now: number };

function questionOf(input: ClaimEffectAt): EffectQuestion {
  const { effect, now, token, death } = input;
  const { hash, dueAt } = effect;
  return { hash, dueAt, now, token, death };
}

export function removedMeanwhile(ref: EffectRef): HoldfastError {
  return new HoldfastError(
    "TRANSACTION_CONFLICT",
    `The ${effectTitle(namesOf(ref))} was removed by somebody at this very moment. Try again.`,
    { ...namesOf(ref) },
  );
}

/** The row of a new effect; undefined when there is one. */
function* insertEffect(
  session: number,
  input: ClaimEffectAt,
  claim: HeldEffect | undefined,
): Tx<number | undefined> {
  const { scope, replayKey, attempt, kind, hash, envelope, dueAt } =
    input.effect;
  const inserted = yield* row<{ readonly key: number }>(sql`
    INSERT INTO holdfast_effect
      (session, scope_kind, scope, replay_key, attempt, kind, hash, envelope, status, created_at, due_at,
       fence, process, token, claimed_at, renewed_at, expires_at)
    VALUES (${session}, ${scope.kind}, ${scope.id}, ${replayKey}, ${attempt}, ${kind}, ${hash}, ${envelope},
      'inProgress', ${input.now}, ${dueAt}, ${claim?.fence ?? 0}, ${claim?.process ?? null},
      ${claim?.token ?? null}, ${claim?.claimedAt ?? null}, ${claim?.renewedAt ?? null}, ${claim?.expiresAt ?? null})
    ON CONFLICT (session, scope_kind, scope, replay_key, attempt) DO NOTHING RETURNING key`);
  return inserted?.key;
}

function* claimRecorded(
  scope: EffectScopeRef,
  found: EffectRow,
  input: ClaimEffectAt,
): Tx<ClaimEffectOutcome> {
  const { key } = found;
  const decision = decideEffect(stateOf(found), questionOf(input));
  switch (decision.kind) {
    case "claim":
    case "takeover": {
      const claim = newClaim(decision, input);
      yield* writeClaim(key, claim);
      return {
        kind: "claimed",
        claim: claimed(scope, input.effect, key, claim, decision.dueAt),
      };
    }
    case "reenter":
      return {
        kind: "claimed",
        claim: claimed(scope, input.effect, key, decision.claim, found.due_at),
      };
    case "conflict":
      return yield* conflictWith(found);
    default:
      return answerOf(found, decision);
  }
}

/** What is answered without changing anything. */
export function answerOf(
  found: EffectRow,
  decision: Exclude<
    EffectDecision,
    { readonly kind: "claim" | "takeover" | "reenter" | "conflict" }
  >,
): Exclude<ClaimEffectOutcome, { readonly kind: "claimed" | "conflict" }> {
  const { key } = found;
  switch (decision.kind) {
    case "busy":
      return { kind: "busy", key, holder: decision.holder };
    case "notDue":
      return { kind: "notDue", key, dueAt: decision.dueAt };
    case "replay":
    case "failed":
      return {
        kind: "settled",
        effect: { ...decision.outcome, key, settledAt: found.settled_at ?? 0 },
      };
    case "missing":
    case "unfinished":
      throw new Error("Nobody claims in strict replay.");
    default:
      return unreachable(decision);
  }
}

/** The envelope is only read for the error that names what differs. */
export function* conflictWith(
  found: Pick<EffectRow, "key" | "hash">,
): Tx<Extract<ClaimEffectOutcome, { readonly kind: "conflict" }>> {
  const { key, hash } = found;
  const stored = yield* row<{ readonly envelope: Encoded }>(sql`
    SELECT envelope FROM holdfast_effect WHERE key = ${key}`);
  if (stored === undefined) throw corruptEffect(key, "has no envelope");
  return { kind: "conflict", key, hash, envelope: stored.envelope };
}

export function* writeClaim(key: number, claim: HeldEffect): Tx<void> {
  const { process, fence, token, claimedAt, renewedAt, expiresAt } = claim;
  yield* run(sql`
    UPDATE holdfast_effect SET process = ${process}, fence = ${fence}, token = ${token},
      claimed_at = ${claimedAt}, renewed_at = ${renewedAt}, expires_at = ${expiresAt}
    WHERE key = ${key}`);
}

export function claimed(
  scope: EffectScopeRef,
  { replayKey, attempt }: EffectRef,
  key: number,
  { token, fence, claimedAt, expiresAt }: HeldEffect,
  dueAt: number | null,
): EffectClaim {
  return {
    scope,
    replayKey,
    attempt,
    key,
    token,
    fence,
    claimedAt,
    expiresAt,
    dueAt,
  };
}
