import { instantOf } from "../../model/clock.ts";
import type { Now } from "../../model/clock.ts";
import { decideEffect } from "../../model/effect.ts";
import type { EffectOutcome } from "../../model/effect.ts";
import type { ProvenDeath } from "../../model/lease.ts";
import { lockRow } from "../../sql/dialect.ts";
import { announce, row, run, plainOperation } from "../../sql/operation.ts";
import type { Operation, Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { answerOf, conflictWith, removedMeanwhile } from "./claim.ts";
import type { ClaimEffectOutcome, SettledEffect } from "./claim.ts";
import {
  aggregateOf,
  effectColumns,
  stateOf,
  whichEffect,
} from "./effect-row.ts";
import type { EffectRow, WantedEffect } from "./effect-row.ts";
import { keptScope } from "./scope.ts";
import { effectChanged } from "./topics.ts";

export interface RecordEffect {
  readonly effect: WantedEffect;
  readonly outcome: EffectOutcome;
  /** What a claim would have shown; nobody has it. */
  readonly token: string;
  readonly now: Now;
  /** A holder that was seen, and whose process has provably died since. */
  readonly death?: ProvenDeath | undefined;
}

export type RecordEffectOutcome =
  | { readonly kind: "recorded"; readonly effect: SettledEffect }
  /** It was not: what claiming it would have answered. */
  | Exclude<ClaimEffectOutcome, { readonly kind: "claimed" }>;

/**
 * Records an effect that was done in the same transaction, unless it is
 * recorded or somebody is at it. Whoever composes it rolls back what was done
 * then.
 *
 * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`, `CORRUPT_ROW`
 */
export const recordEffect: Operation<RecordEffect, RecordEffectOutcome> =
  plainOperation("recordEffect", {
    snapshotSafe: true,
    key: (input: RecordEffect) => aggregateOf(input.effect),
    *one(input) {
      const { effect, outcome } = input;
      const { session } = yield* keptScope(effect.scope);
      const settledAt = instantOf(input.now);
      const key = yield* insertSettled(session, input, settledAt);
      if (key !== undefined)
        return { kind: "recorded", effect: { ...outcome, key, settledAt } };
      const found = yield* row<EffectRow>(sql`
        SELECT ${effectColumns} FROM holdfast_effect WHERE ${whichEffect(session, effect)} ${lockRow}`);
      if (found === undefined) throw removedMeanwhile(effect);
      return yield* recordFound(found, input, instantOf(input.now));
    },
  });

function* insertSettled(
  session: number,
  { effect, outcome, token }: RecordEffect,
  now: number,
): Tx<number | undefined> {
  const { scope, replayKey, attempt, kind, hash, envelope, dueAt } = effect;
  const inserted = yield* row<{ readonly key: number }>(sql`
    INSERT INTO holdfast_effect
      (session, scope_kind, scope, replay_key, attempt, kind, hash, envelope, status, created_at, due_at,
       fence, token, settled_at, is_transient, outcome)
    VALUES (${session}, ${scope.kind}, ${scope.id}, ${replayKey}, ${attempt}, ${kind}, ${hash}, ${envelope},
      ${outcome.status}, ${now}, ${dueAt}, 1, ${token}, ${now}, ${outcome.isTransient ? 1 : 0}, ${outcome.value})
    ON CONFLICT (session, scope_kind, scope, replay_key, attempt) DO NOTHING RETURNING key`);
  return inserted?.key;
}

function* recordFound(
  found: EffectRow,
  { effect, outcome, token, death }: RecordEffect,
  now: number,
): Tx<RecordEffectOutcome> {
  const { key } = found;
  const { hash, dueAt } = effect;
  const asked = { hash, dueAt, now, death };
  const decision = decideEffect(stateOf(found), asked);
  switch (decision.kind) {
    case "claim":
    case "takeover":
    case "reenter":
      yield* run(sql`
        UPDATE holdfast_effect SET status = ${outcome.status}, outcome = ${outcome.value},
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
