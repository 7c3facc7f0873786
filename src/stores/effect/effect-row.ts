import type { EffectOutcome, EffectState, HeldEffect } from "../../model/effect/effect.ts";
import type { EffectNames } from "../../model/effect/errors.ts";
import type { Encoded } from "../../model/values/encoded.ts";
import { HoldfastError } from "../../model/errors.ts";
import type { OwnerId } from "../../model/ids/prefixed-id.ts";
import { lockRow } from "../../sql/dialect.ts";
import { row, run, type Tx } from "../../sql/operation.ts";
import { sql, type Statement } from "../../sql/statement.ts";
import type { OwnedRows } from "../removal.ts";
import type { EffectScopeRef } from "./scope.ts";

/** What waiters listen for: the effect whose row has that key was settled, or is no longer held. */
export const effectChanged = "effect.changed";

/** An effect as callers name it. */
export interface EffectRef {
  readonly scope: EffectScopeRef;
  readonly replayKey: string;
  readonly attempt: number;
}

/** The same with what is asked for. */
export interface EffectRequest extends EffectRef {
  readonly kind: string;
  /** Kind and input in canonical form. */
  readonly envelope: Encoded;
  readonly hash: string;
  /** Not to be run before; for an effect that is recorded already, what was said first counts. */
  readonly dueAt: number | null;
}

export function namesOf({ scope, replayKey, attempt }: EffectRef): EffectNames {
  return { scopeKind: scope.kind, scope: scope.id, replayKey, attempt };
}

/** An effect that is done with. */
export interface SettledEffect extends EffectOutcome {
  readonly key: number;
  readonly settledAt: number;
}

/** The columns of `holdfast_effect` that operations read; the envelope is only read when it matters. */
export interface EffectRow {
  readonly key: number;
  readonly hash: string;
  readonly status: string;
  readonly due_at: number | null;
  readonly fence: number;
  readonly process: OwnerId | null;
  readonly token: string | null;
  readonly claimed_at: number | null;
  readonly renewed_at: number | null;
  readonly expires_at: number | null;
  readonly settled_at: number | null;
  readonly is_transient: number | null;
  readonly outcome: Encoded | null;
}

export const effectColumns: Statement = sql`
  key, hash, status, due_at, fence, process, token, claimed_at, renewed_at, expires_at,
  settled_at, is_transient, outcome`;

/** Picks one attempt out of a session's effects. */
export function whichEffect(session: number, ref: EffectRef): Statement {
  const { scope, replayKey, attempt } = ref;
  return sql`session = ${session} AND scope_kind = ${scope.kind} AND scope = ${scope.id}
    AND replay_key = ${replayKey} AND attempt = ${attempt}`;
}

/** An effect by its row, locked until the transaction ends. */
export function* lockedEffect(key: number): Tx<EffectRow | undefined> {
  return yield* row<EffectRow>(sql`
    SELECT ${effectColumns} FROM holdfast_effect WHERE key = ${key} ${lockRow}`);
}

/** @throws HoldfastError `CORRUPT_ROW` */
export function stateOf(found: EffectRow | undefined): EffectState {
  if (found === undefined) return { kind: "absent" };
  const { hash, due_at: dueAt, status, fence } = found;
  switch (status) {
    case "inProgress":
      return { kind: "inProgress", hash, dueAt, fence, claim: claimOf(found) };
    case "completed":
    case "failed": {
      const { outcome: value, settled_at: settledAt, token } = found;
      if (value === null || settledAt === null || token === null)
        throw corruptEffect(found.key, "is settled but lacks its outcome");
      const isTransient = found.is_transient === 1;
      const outcome = { status, isTransient, value } as const;
      return { kind: "settled", hash, dueAt, outcome, settledAt, token };
    }
    default:
      throw corruptEffect(found.key, "has a status that there is not");
  }
}

function claimOf(found: EffectRow): HeldEffect | null {
  const { process, fence, token } = found;
  if (token === null) return null;
  const { claimed_at: claimedAt, renewed_at: renewedAt, expires_at: expiresAt } = found;
  if (claimedAt === null || renewedAt === null || expiresAt === null)
    throw corruptEffect(found.key, "has a token but lacks other parts");
  return { process, fence, token, claimedAt, renewedAt, expiresAt };
}

export function corruptEffect(
  key: number,
  why: string,
  options?: { readonly cause: unknown },
): HoldfastError {
  return new HoldfastError(
    "CORRUPT_ROW",
    `A row of holdfast_effect (${key}) ${why}, which no operation of Holdfast writes. ` +
      "Look at the row with a database shell; restore it from a backup, or delete it to have the effect run again.",
    { table: "holdfast_effect", key: String(key) },
    options,
  );
}

/** An attempt at an effect that is settled. */
interface SettledAttempt extends SettledEffect {
  readonly attempt: number;
}

/** One attempt, or the first that nothing follows: a transient failure below the last that is allowed is tried again. */
type WhichAttempt = { readonly recorded: number } | { readonly retriedBelow: number };

/**
 * The outcome of an effect, for a group that waits for several; undefined
 * while it may still change. Later attempts do not matter: the outcome of the
 * first that counts was to be seen before they began.
 *
 * @throws HoldfastError `CORRUPT_ROW`
 */
export function* settledAttempt(
  session: number,
  { scope, replayKey }: Pick<EffectRef, "scope" | "replayKey">,
  which: WhichAttempt,
): Tx<SettledAttempt | undefined> {
  const isCounted =
    "recorded" in which
      ? sql`attempt = ${which.recorded}`
      : sql`(status <> 'failed' OR COALESCE(is_transient, 0) = 0 OR attempt >= ${which.retriedBelow})`;
  const found = yield* row<EffectRow & { readonly attempt: number }>(sql`
    SELECT attempt, ${effectColumns} FROM holdfast_effect
    WHERE session = ${session} AND scope_kind = ${scope.kind} AND scope = ${scope.id} AND replay_key = ${replayKey}
      AND status <> 'inProgress' AND ${isCounted}
    ORDER BY attempt LIMIT 1`);
  if (found === undefined) return undefined;
  const { key, attempt } = found;
  const state = stateOf(found);
  if (state.kind !== "settled") throw corruptEffect(key, "is not settled");
  return { ...state.outcome, settledAt: state.settledAt, key, attempt };
}

/** What goes with a session: the effects of its scopes. */
export const effectsOwned: readonly OwnedRows[] = [
  {
    table: "holdfast_effect",
    remove: (session, rowsMax) =>
      run(sql`
        DELETE FROM holdfast_effect WHERE key IN (
          SELECT key FROM holdfast_effect WHERE session = ${session} LIMIT ${rowsMax})`),
  },
];
