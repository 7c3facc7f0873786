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

/** The topic of waiters: the effect with this row key was settled or is no longer held. */
export const effectChanged = "effect.changed";

/** The scope, key and attempt that name an effect. */
export interface EffectRef {
  readonly scope: EffectScopeRef;
  readonly replayKey: string;
  readonly attempt: number;
}

/** The names of an effect with its envelope. */
export interface EffectRequest extends EffectRef {
  readonly kind: string;
  /** Kind and input in canonical form. */
  readonly envelope: Encoded;
  readonly hash: string;
  /** The hash of the unencrypted envelope, where the payload codec has a key. */
  readonly clearHash?: string | undefined;
  /** The earliest time to run it. For a recorded effect the first value counts. */
  readonly dueAt: number | null;
}

export function namesOf({ scope, replayKey, attempt }: EffectRef): EffectNames {
  return { scopeKind: scope.kind, scope: scope.id, replayKey, attempt };
}

/** A settled effect. */
export interface SettledEffect extends EffectOutcome {
  readonly key: number;
  readonly settledAt: number;
}

/**
 * The columns of `holdfast_effect` that operations read. The envelope is read only where it is
 * needed.
 */
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
  /** The checksum of the outcome. */
  readonly checksum: string | null;
}

export const effectColumns: Statement = sql`
  key, hash, status, due_at, fence, process, token, claimed_at, renewed_at, expires_at,
  settled_at, is_transient, outcome, checksum`;

/** Selects one attempt of an effect in a session. */
export function whichEffect(session: number, ref: EffectRef): Statement {
  const { scope, replayKey, attempt } = ref;
  return sql`session = ${session} AND scope_kind = ${scope.kind} AND scope = ${scope.id}
    AND replay_key = ${replayKey} AND attempt = ${attempt}`;
}

/** Reads an effect by its row key and locks it until the transaction ends. */
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
      const { outcome: text, checksum, settled_at: settledAt, token } = found;
      if (text === null || checksum === null || settledAt === null || token === null)
        throw corruptEffect(found.key, "is settled but lacks its outcome");
      const isTransient = found.is_transient === 1;
      const outcome = { status, isTransient, value: { text, checksum } } as const;
      return { kind: "settled", hash, dueAt, outcome, settledAt, token };
    }
    default:
      throw corruptEffect(found.key, "has an unknown status");
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

/** The effects that a session owns, which are removed with it. */
export const effectsOwned: readonly OwnedRows[] = [
  {
    table: "holdfast_effect",
    remove: (session, rowsMax) =>
      run(sql`
        DELETE FROM holdfast_effect WHERE key IN (
          SELECT key FROM holdfast_effect WHERE session = ${session} LIMIT ${rowsMax})`),
  },
];
