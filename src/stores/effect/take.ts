import { decideEffect, type EffectDecision } from "../../model/effect/effect.ts";
import { effectNotRecorded, effectTitle, effectUnfinished } from "../../model/effect/errors.ts";
import { HoldfastError } from "../../model/errors.ts";
import type { ProvenDeath } from "../../model/lease.ts";
import { instantOf } from "../../model/time/clock.ts";
import type { Encoded } from "../../model/values/encoded.ts";
import { row, type Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import type { EffectContext } from "./context.ts";
import {
  changeEffect,
  corruptEffect,
  insertEffect,
  lockedEffect,
  namesOf,
  stateOf,
  whichEffect,
  type EffectChange,
  type EffectRef,
  type EffectRequest,
  type EffectRow,
} from "./effect-row.ts";
import { keptScope, type EffectScopeRef } from "./scope.ts";

/** A request to claim an effect, or to record its outcome. */
export interface TakeEffect {
  readonly effect: EffectRequest;
  /** Identifies a repeated request. */
  readonly token: string;
  /** A previous holder whose process is proven dead. */
  readonly death?: ProvenDeath | undefined;
}

type RunDecision = Extract<EffectDecision, { readonly kind: "run" }>;

/** An effect that the caller has claimed or recorded. */
interface TakenEffect<C> {
  readonly kind: "taken";
  readonly key: number;
  /** Names the generation of its session. */
  readonly scope: EffectScopeRef;
  readonly dueAt: number | null;
  readonly change: C;
}

/** The answer to a caller that may not run the effect. It changes nothing. */
export type EffectAnswer =
  | (Extract<EffectDecision, { readonly kind: "busy" | "notDue" | "settled" }> & {
      readonly key: number;
    })
  /** The key was used before with another envelope, which is this one. */
  | {
      readonly kind: "conflict";
      readonly key: number;
      readonly hash: string;
      readonly envelope: Encoded;
    };

/**
 * Writes a claim or an outcome to an effect that is new or free; otherwise returns the answer. The
 * clock is read again after the row is locked. The transaction that had locked it may have taken
 * longer than its claim lasts.
 *
 * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`, `CORRUPT_ROW`
 */
export function* takeEffect<C extends EffectChange>(
  { clock }: EffectContext,
  { effect, token, death }: TakeEffect,
  changeOf: (decision: RunDecision, now: number) => C,
): Tx<TakenEffect<C> | EffectAnswer> {
  const { session, scope } = yield* keptScope(effect.scope);
  const { dueAt } = effect;
  const first = instantOf(() => clock.now());
  const opening = decideEffect({ kind: "absent" }, { effect, now: first });
  const made = opening.kind === "run" ? changeOf(opening, first) : undefined;
  const key = yield* insertEffect(session, effect, first, made ?? { fence: 0 });
  if (key !== undefined)
    return made === undefined
      ? { kind: "notDue", key, dueAt: dueAt ?? first }
      : { kind: "taken", key, scope, dueAt, change: made };
  const found = yield* lockedEffect(whichEffect(session, effect));
  if (found === undefined) throw removedMeanwhile(effect);
  const now = instantOf(() => clock.now());
  const decision = decideEffect(stateOf(found), { effect, now, token, death });
  if (decision.kind !== "run") return yield* answerOf(effect, found, decision);
  const change = changeOf(decision, now);
  if (change !== decision.claim) yield* changeEffect(found.key, change);
  return { kind: "taken", key: found.key, scope, dueAt: found.dueAt, change };
}

function removedMeanwhile(ref: EffectRef): HoldfastError {
  return new HoldfastError(
    "TRANSACTION_CONFLICT",
    `The ${effectTitle(namesOf(ref))} was just removed. Retry the call.`,
    { ...namesOf(ref) },
  );
}

/**
 * Completes a decision that lets nothing run. A conflict reads the envelope, which only this error
 * needs, to name the difference.
 *
 * @throws HoldfastError `EFFECT_NOT_RECORDED`, `EFFECT_UNFINISHED`, `CORRUPT_ROW`
 */
export function* answerOf(
  ref: EffectRef,
  found: Pick<EffectRow, "key"> | undefined,
  decision: Exclude<EffectDecision, RunDecision>,
): Tx<EffectAnswer> {
  if (decision.kind === "missing" || found === undefined) throw effectNotRecorded(namesOf(ref));
  if (decision.kind === "unfinished") throw effectUnfinished(namesOf(ref));
  const { key } = found;
  if (decision.kind !== "conflict") return { ...decision, key };
  const stored = yield* row<{ readonly envelope: Encoded }>(sql`
    SELECT envelope FROM holdfast_effect WHERE key = ${key}`);
  if (stored === undefined) throw corruptEffect(key, "has no envelope");
  return { ...decision, ...stored, key };
}
