import type { EffectEnvelope } from "../../model/effect/envelope.ts";
import type { EffectOutcome } from "../../model/effect/effect.ts";
import { isSameToken, newToken } from "../../model/ids/token.ts";
import type { WaitOptions } from "../../sql/database.ts";
import { storeOperation, type Tx } from "../../sql/operation.ts";
import { optionsAndWait, type Call } from "../method.ts";
import { shownAnswer, type ClaimedEffect } from "./claim.ts";
import { effectRequest, type EffectContext } from "./context.ts";
import { settledColumns, type SettledEffect } from "./effect-row.ts";
import { outcomeOf, refuseFailed } from "./finish.ts";
import { aggregateOf, type EffectScope } from "./scope.ts";
import { takeEffect, type EffectAnswer, type TakeEffect } from "./take.ts";

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

export interface RecordEffect extends TakeEffect {
  readonly outcome: EffectOutcome;
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
  { readonly kind: "recorded"; readonly effect: SettledEffect } | EffectAnswer;

/**
 * Records an effect that was done in the same transaction, unless it is already recorded or held.
 * In that case a caller that composes this operation rolls back its work.
 *
 * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`, `CORRUPT_ROW`
 */
export const recordEffect = storeOperation("recordEffect", {
  snapshotSafe: true,
  key: (input) => aggregateOf(input.effect),
  *one(context: EffectContext, input: RecordEffect): Tx<RecordEffectOutcome> {
    const { outcome, token } = input;
    const taken = yield* takeEffect(context, input, ({ fence }, now) => ({
      ...settledColumns(outcome, now),
      fence,
      token,
    }));
    if (taken.kind === "taken") {
      const { key, change } = taken;
      return { kind: "recorded", effect: { ...outcome, key, settledAt: change.settledAt } };
    }
    const isRepeated = taken.kind === "settled" && isSameToken(taken.token, token);
    return isRepeated ? { kind: "recorded", effect: taken } : taken;
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
