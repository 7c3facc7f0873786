import { row } from "../../sql/operation.ts";
import type { Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import type { SettledEffect } from "./claim.ts";
import { corruptEffect, effectColumns, stateOf } from "./effect-row.ts";
import type { EffectRef, EffectRow } from "./effect-row.ts";

/** An attempt at an effect that is settled. */
interface SettledAttempt extends SettledEffect {
  readonly attempt: number;
}

/** One attempt, or the first that nothing follows: a transient failure below the last that is allowed is tried again. */
type WhichAttempt =
  { readonly recorded: number } | { readonly retriedBelow: number };

/**
 * What an effect has come to, for who waits for several; undefined while it
 * may still change. Later attempts do not matter: what the first that counts
 * has come to was to be seen before they began.
 *
 * @throws HoldfastError `CORRUPT_ROW`
 */
export function* settledAttempt(
  session: number,
  { scope, replayKey }: Pick<EffectRef, "scope" | "replayKey">,
  which: WhichAttempt,
): Tx<SettledAttempt | undefined> {
  const wanted =
    "recorded" in which
      ? sql`attempt = ${which.recorded}`
      : sql`(status <> 'failed' OR COALESCE(is_transient, 0) = 0 OR attempt >= ${which.retriedBelow})`;
  const found = yield* row<EffectRow & { readonly attempt: number }>(sql`
    SELECT attempt, ${effectColumns} FROM holdfast_effect
    WHERE session = ${session} AND scope_kind = ${scope.kind} AND scope = ${scope.id} AND replay_key = ${replayKey}
      AND status <> 'inProgress' AND ${wanted}
    ORDER BY attempt LIMIT 1`);
  if (found === undefined) return undefined;
  const { key, attempt } = found;
  const state = stateOf(found);
  if (state.kind !== "settled") throw corruptEffect(key, "is not settled");
  return { ...state.outcome, settledAt: state.settledAt, key, attempt };
}
