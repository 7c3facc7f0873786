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
import { row, run, storeOperation, type StoreOperation, type Tx } from "../../sql/operation.ts";
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
 * An effect is a row for each attempt. Whoever asks first claims it: a token,
 * a fence and an instant at which the claim ends. `decideEffect` says what a
 * caller gets: the claim, the recorded outcome, who runs it, or when it is due;
 * the clock is read once the row is locked, so a call that waited for longer
 * than a claim lasts is refused. A due time is fixed by who asks first, and
 * until then nobody holds the row: a sleep costs nothing.
 */

export interface ClaimEffectOptions extends WaitOptions {
  /** Which attempt; defaults to 1. */
  readonly attempt?: number;
  /** For how long; defaults to 30 seconds. */
  readonly lease?: Duration;
  /** Not before so long after it was first asked for. */
  readonly delay?: Duration;
  /** One that nobody can guess, so that the same call made again after a lost answer has the same claim; defaults to a new one. */
  readonly token?: string;
}

export interface ClaimEffect {
  readonly effect: EffectRequest;
  /** Whose death ends the claim; `null` lets only time end it. */
  readonly process: OwnerId | null;
  /** For a new claim; a caller that shows the token of the claim there is has it already. */
  readonly token: string;
  readonly leaseMs: number;
  /** A holder that was seen, and whose process has provably died since. */
  readonly death?: ProvenDeath | undefined;
}

/** The right to run an effect, as its holder has it. */
export interface EffectClaim extends EffectRef, EffectFence {
  readonly key: number;
  readonly claimedAt: number;
  readonly expiresAt: number;
  readonly dueAt: number | null;
}

/** What a caller gets that asks for an effect. */
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

/** What of a holder is enough to prove its death. */
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

/** A holder as `claim` and `get` show it. @throws HoldfastError `OPTION_INVALID`, `ID_MALFORMED` */
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
  /** The key was used before for something else, which is this. */
  | {
      readonly kind: "conflict";
      readonly key: number;
      readonly hash: string;
      readonly envelope: Encoded;
    };

/**
 * Takes an effect to run it, or tells what is recorded or which worker runs it.
 *
 * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`, `CORRUPT_ROW`
 */
export const claimEffect: StoreOperation<EffectContext, ClaimEffect, ClaimEffectOutcome> =
  storeOperation("claimEffect", {
    key: (input: ClaimEffect) => aggregateOf(input.effect),
    *one({ clock }: EffectContext, input) {
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
      // The transaction that had it locked may have taken longer than its claim lasts.
      const then = { ...input, now: instantOf(() => clock.now()) };
      return yield* claimRecorded(scope, found, then);
    },
  });

/** @throws HoldfastError `EFFECT_CONFLICT`, `CORRUPT_ROW` */
export function shownClaim(
  context: EffectContext,
  outcome: ClaimEffectOutcome,
  { effect: request }: { readonly effect: EffectRequest },
): ClaimedEffect {
  return outcome.kind === "claimed" ? outcome : shownAnswer(context, outcome, request);
}

/** The same of one that was not claimed. */
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

/** The same at an instant. */
interface ClaimEffectAt extends ClaimEffect {
  readonly now: number;
}

function questionOf(input: ClaimEffectAt): EffectQuestion {
  const { effect, now, token, death } = input;
  const { hash, dueAt } = effect;
  return { hash, dueAt, now, token, death };
}

export function removedMeanwhile(ref: EffectRef): HoldfastError {
  return new HoldfastError(
    "TRANSACTION_CONFLICT",
    `The ${effectTitle(namesOf(ref))} was removed at this very moment. Try again.`,
    { ...namesOf(ref) },
  );
}

/** The row of a new effect; undefined when there is one. */
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
      throw new Error("Nothing is claimed in strict replay.");
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
