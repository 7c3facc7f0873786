import { instantOf } from "../../model/time/clock.ts";
import type { Duration } from "../../model/time/durations.ts";
import { effectTitle } from "../../model/effect/errors.ts";
import type { EffectEnvelope } from "../../model/effect/envelope.ts";
import {
  decideEffect,
  newClaim,
  type EffectDecision,
  type EffectFence,
  type EffectHolder,
  type EffectQuestion,
  type HeldEffect,
} from "../../model/effect/effect.ts";
import type { Encoded } from "../../model/values/encoded.ts";
import { HoldfastError, unreachable } from "../../model/errors.ts";
import type { ProvenDeath } from "../../model/lease.ts";
import { parseOwnerId, type OwnerId } from "../../model/ids/prefixed-id.ts";
import { checkedText } from "../../model/shape.ts";
import { isRecord } from "../../model/values/spoken-kind.ts";
import { newToken } from "../../model/ids/token.ts";
import type { WaitOptions } from "../../sql/database.ts";
import { lockRow } from "../../sql/dialect.ts";
import { row, run, storeOperation, type Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { optionsAndWait, type Call } from "../method.ts";
import {
  conflictOf,
  effectRequest,
  leaseMsOf,
  readFailure,
  readValue,
  type EffectContext,
} from "./context.ts";
import {
  corruptEffect,
  effectColumns,
  namesOf,
  stateOf,
  whichEffect,
  type EffectRef,
  type EffectRequest,
  type EffectRow,
  type SettledEffect,
} from "./effect-row.ts";
import { aggregateOf, keptScope, type EffectScope, type EffectScopeRef } from "./scope.ts";

/**
 * An effect has one row for each attempt. The first caller claims it with a token, a fence and the
 * instant at which the claim ends. `decideEffect` picks the answer to a caller: the claim, the
 * recorded outcome, the current holder, or the due time. The clock is read after the row is locked,
 * so a call that waited longer than its claim lasts is refused. The first caller also sets the due
 * time. Until then nobody holds the row, so a sleep costs nothing.
 */

export interface ClaimEffectOptions extends WaitOptions {
  /** The number of the attempt; defaults to 1. */
  readonly attempt?: number;
  /** The length of the claim; defaults to 30 seconds. */
  readonly lease?: Duration;
  /** The earliest start, counted from the first call. */
  readonly delay?: Duration;
  /**
   * Must be unguessable; defaults to a new token. Pass it again when you retry after a lost
   * response, to get the same claim.
   */
  readonly token?: string;
}

export interface ClaimEffect {
  readonly effect: EffectRequest;
  /** The process whose death ends the claim; with `null` only time ends it. */
  readonly process: OwnerId | null;
  /**
   * The token for a new claim. A caller that presents the token of the current claim already holds
   * it.
   */
  readonly token: string;
  readonly leaseMs: number;
  /** A previous holder whose process is proven dead. */
  readonly death?: ProvenDeath | undefined;
}

/** The right to run an effect, as its holder presents it. */
export interface EffectClaim extends EffectRef, EffectFence {
  readonly key: number;
  readonly claimedAt: number;
  readonly expiresAt: number;
  readonly dueAt: number | null;
}

/** The answer of `claim`. */
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

/** The fields of a holder that are needed to prove its death. */
export type SeenEffectHolder = Pick<EffectHolder, "process" | "fence">;

/** @throws HoldfastError those of `effectRequest`, `OPTION_INVALID`, `NAME_INVALID`, `DURATION_INVALID` */
export function givenClaim(
  context: EffectContext,
  scope: EffectScope,
  key: string,
  envelope: EffectEnvelope,
  given?: ClaimEffectOptions,
): Call<ClaimEffect> {
  const { options, wait } = optionsAndWait(given, ["attempt", "lease", "delay", "token"]);
  const { lease, token } = options;
  const input = {
    effect: effectRequest(context, scope, key, envelope, options),
    process: context.database.owner,
    token:
      token === undefined ? newToken(context.entropy) : checkedText("The token of a claim", token),
    leaseMs: leaseMsOf(context, lease),
  };
  return { input, wait };
}

/**
 * Validates a holder returned by `claim` or `get`.
 * @throws HoldfastError `OPTION_INVALID`, `ID_MALFORMED`
 */
export function checkedHolder(holder: SeenEffectHolder): SeenEffectHolder {
  const given: unknown = holder;
  if (isRecord(given) && Number.isSafeInteger(given["fence"])) {
    if (given["process"] === null) return holder;
    if (typeof given["process"] === "string") {
      parseOwnerId(given["process"]);
      return holder;
    }
  }
  throw new HoldfastError(
    "OPTION_INVALID",
    "Expected observed to be a holder as claim returns it. Pass that object as it is.",
    { option: "observed" },
  );
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
  /** The key was used before with another envelope, which is this one. */
  | {
      readonly kind: "conflict";
      readonly key: number;
      readonly hash: string;
      readonly envelope: Encoded;
    };

/**
 * Claims an effect to run it, or returns the recorded result or the worker that runs it.
 * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`, `CORRUPT_ROW`
 */
export const claimEffect = storeOperation("claimEffect", {
  key: (input) => aggregateOf(input.effect),
  *one({ clock }: EffectContext, input: ClaimEffect): Tx<ClaimEffectOutcome> {
    const { effect } = input;
    const { dueAt } = effect;
    const { session, scope } = yield* keptScope(effect.scope);
    const first = { ...input, now: instantOf(() => clock.now()) };
    const decision = decideEffect({ kind: "absent" }, questionOf(first));
    const claim = decision.kind === "claim" ? newClaim(decision, first) : undefined;
    const key = yield* insertEffect(session, first, claim);
    if (key !== undefined)
      return claim === undefined
        ? { kind: "notDue", key, dueAt: dueAt ?? first.now }
        : {
            kind: "claimed",
            claim: claimed(scope, effect, key, claim, dueAt),
          };
    const found = yield* row<EffectRow>(sql`
      SELECT ${effectColumns} FROM holdfast_effect WHERE ${whichEffect(session, effect)} ${lockRow}`);
    if (found === undefined) throw removedMeanwhile(effect);
    // The transaction that had locked the row may have taken longer than its claim lasts.
    const then = { ...input, now: instantOf(() => clock.now()) };
    return yield* claimRecorded(scope, found, then);
  },
});

/**
 * Maps the outcome of a claim to the caller's answer.
 * @throws HoldfastError `EFFECT_CONFLICT`, `CORRUPT_ROW`
 */
export function shownClaim(
  context: EffectContext,
  outcome: ClaimEffectOutcome,
  { effect: request }: { readonly effect: EffectRequest },
): ClaimedEffect {
  return outcome.kind === "claimed" ? outcome : shownAnswer(context, outcome, request);
}

/** Maps every outcome but a new claim to the caller's answer. */
export function shownAnswer(
  context: EffectContext,
  outcome: Exclude<ClaimEffectOutcome, { readonly kind: "claimed" }>,
  request: EffectRequest,
): Exclude<ClaimedEffect, { readonly kind: "claimed" }> {
  switch (outcome.kind) {
    case "busy":
      return { kind: "busy", holder: outcome.holder };
    case "notDue":
      return { kind: "notDue", dueAt: outcome.dueAt };
    case "conflict":
      throw conflictOf(context, request, outcome);
    default: {
      const { effect } = outcome;
      return effect.status === "completed"
        ? { kind: "completed", value: readValue(context, effect) }
        : {
            kind: "failed",
            error: readFailure(context, effect),
            isTransient: effect.isTransient,
          };
    }
  }
}

/** A claim request at an instant. */
interface ClaimEffectAt extends ClaimEffect {
  readonly now: number;
}

function questionOf(input: ClaimEffectAt): EffectQuestion {
  const { effect, now, token, death } = input;
  const { hash, clearHash, dueAt } = effect;
  return { hash, clearHash, dueAt, now, token, death };
}

export function removedMeanwhile(ref: EffectRef): HoldfastError {
  return new HoldfastError(
    "TRANSACTION_CONFLICT",
    `The ${effectTitle(namesOf(ref))} was removed at this very moment. Try again.`,
    { ...namesOf(ref) },
  );
}

/** Inserts the row of a new effect; undefined when the row exists. */
function* insertEffect(
  session: number,
  input: ClaimEffectAt,
  claim: HeldEffect | undefined,
): Tx<number | undefined> {
  const { scope, replayKey, attempt, kind, hash, envelope, dueAt } = input.effect;
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

/** The answers that change nothing. */
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
      throw new Error("Nothing is claimed in strict replay.");
    default:
      return unreachable(decision);
  }
}

/** Reads the envelope, which only this error needs, to name the difference. */
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
