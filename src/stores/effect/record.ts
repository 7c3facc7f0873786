import { instantOf } from "../../model/time/clock.ts";
import type { EffectEnvelope } from "../../model/effect/envelope.ts";
import { decideEffect, type EffectOutcome } from "../../model/effect/effect.ts";
import type { ProvenDeath } from "../../model/lease.ts";
import { isSameToken, newToken } from "../../model/ids/token.ts";
import type { WaitOptions } from "../../sql/database.ts";
import { lockRow } from "../../sql/dialect.ts";
import { announce, row, run, storeOperation, type Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { optionsAndWait, type Call } from "../method.ts";
import {
  answerOf,
  conflictWith,
  removedMeanwhile,
  shownAnswer,
  type ClaimedEffect,
  type ClaimEffectOutcome,
} from "./claim.ts";
import { effectRequest, type EffectContext } from "./context.ts";
import {
  effectChanged,
  effectColumns,
  stateOf,
  whichEffect,
  type EffectRequest,
  type EffectRow,
  type SettledEffect,
} from "./effect-row.ts";
import { outcomeOf, refuseFailed } from "./finish.ts";
import { aggregateOf, keptScope, type EffectScope } from "./scope.ts";

export interface RecordEffectOptions extends WaitOptions {
  /** The number of the attempt; defaults to 1. */
  readonly attempt?: number;
}

/** The answer of `record`. */
export type RecordedEffect =
  | { readonly kind: "recorded" }
  /**
   * The effect was not recorded. This is the answer a claim would have got; roll back the work done
   * for the effect.
   */
  | Exclude<ClaimedEffect, { readonly kind: "claimed" }>;

export interface RecordEffect {
  readonly effect: EffectRequest;
  readonly outcome: EffectOutcome;
  /** Plays the part of a claim's token; identifies a repeated call. */
  readonly token: string;
  /** A previous holder whose process is proven dead. */
  readonly death?: ProvenDeath | undefined;
}

/** @throws HoldfastError those of `effectRequest`, `EFFECT_RESULT_UNSTORABLE` */
export function givenRecord(
  context: EffectContext,
  scope: EffectScope,
  key: string,
  envelope: EffectEnvelope,
  value: unknown,
  given?: RecordEffectOptions,
): Call<RecordEffect> {
  const { options, wait } = optionsAndWait(given, ["attempt"]);
  const effect = effectRequest(context, scope, key, envelope, options);
  const outcome = outcomeOf(context, effect, value);
  return { input: { effect, outcome, token: newToken(context.entropy) }, wait };
}

export type RecordEffectOutcome =
  | { readonly kind: "recorded"; readonly effect: SettledEffect }
  | Exclude<ClaimEffectOutcome, { readonly kind: "claimed" }>;

/**
 * Records an effect that was done in the same transaction, unless it is already recorded or held.
 * In that case a caller that composes this operation rolls back its work.
 *
 * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`, `CORRUPT_ROW`
 */
export const recordEffect = storeOperation("recordEffect", {
  snapshotSafe: true,
  key: (input) => aggregateOf(input.effect),
  *one({ clock }: EffectContext, input: RecordEffect): Tx<RecordEffectOutcome> {
    const { effect, outcome } = input;
    const { session } = yield* keptScope(effect.scope);
    const settledAt = instantOf(() => clock.now());
    const key = yield* insertSettled(session, input, settledAt);
    if (key !== undefined) return { kind: "recorded", effect: { ...outcome, key, settledAt } };
    const found = yield* row<EffectRow>(sql`
      SELECT ${effectColumns} FROM holdfast_effect WHERE ${whichEffect(session, effect)} ${lockRow}`);
    if (found === undefined) throw removedMeanwhile(effect);
    const now = instantOf(() => clock.now());
    return yield* recordFound(found, input, now);
  },
});

/** @throws HoldfastError `EFFECT_CONFLICT`, `VALUE_TOO_LARGE`, `CORRUPT_ROW` */
export function shownRecorded(
  context: EffectContext,
  answer: RecordEffectOutcome,
  { effect }: Pick<RecordEffect, "effect">,
): RecordedEffect {
  if (answer.kind !== "recorded") return shownAnswer(context, answer, effect);
  refuseFailed(context, answer.effect);
  return { kind: "recorded" };
}

function* insertSettled(
  session: number,
  { effect, outcome, token }: RecordEffect,
  now: number,
): Tx<number | undefined> {
  const { scope, replayKey, attempt, kind, hash, envelope, dueAt } = effect;
  const inserted = yield* row<{ readonly key: number }>(sql`
    INSERT INTO holdfast_effect
      (session, scope_kind, scope, replay_key, attempt, kind, hash, envelope, status, created_at, due_at,
       fence, token, settled_at, is_transient, outcome, checksum)
    VALUES (${session}, ${scope.kind}, ${scope.id}, ${replayKey}, ${attempt}, ${kind}, ${hash}, ${envelope},
      ${outcome.status}, ${now}, ${dueAt}, 1, ${token}, ${now}, ${outcome.isTransient ? 1 : 0},
      ${outcome.value.text}, ${outcome.value.checksum})
    ON CONFLICT (session, scope_kind, scope, replay_key, attempt) DO NOTHING RETURNING key`);
  return inserted?.key;
}

function* recordFound(
  found: EffectRow,
  { effect, outcome, token, death }: RecordEffect,
  now: number,
): Tx<RecordEffectOutcome> {
  const { key } = found;
  const { hash, clearHash, dueAt } = effect;
  const state = stateOf(found);
  if (state.kind === "settled" && isSameToken(state.token, token)) {
    const { settledAt } = state;
    return { kind: "recorded", effect: { ...state.outcome, key, settledAt } };
  }
  const decision = decideEffect(state, { hash, clearHash, dueAt, now, death });
  switch (decision.kind) {
    case "claim":
    case "takeover":
    case "reenter":
      yield* run(sql`
        UPDATE holdfast_effect SET status = ${outcome.status}, outcome = ${outcome.value.text}, checksum = ${outcome.value.checksum},
          is_transient = ${outcome.isTransient ? 1 : 0}, settled_at = ${now}, fence = fence + 1, token = ${token},
          process = NULL, claimed_at = NULL, renewed_at = NULL, expires_at = NULL
        WHERE key = ${key}`);
      yield* announce(effectChanged, String(key));
      return { kind: "recorded", effect: { ...outcome, key, settledAt: now } };
    case "conflict":
      return yield* conflictWith(found);
    default:
      return answerOf(found, decision);
  }
}
