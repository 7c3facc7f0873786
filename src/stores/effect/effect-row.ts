import type {
  EffectOutcome,
  EffectState,
  HeldEffect,
  RecordedState,
} from "../../model/effect/effect.ts";
import type { EffectNames } from "../../model/effect/errors.ts";
import type { Encoded } from "../../model/values/encoded.ts";
import { HoldfastError } from "../../model/errors.ts";
import type { OwnerId } from "../../model/ids/prefixed-id.ts";
import { lockRow } from "../../sql/dialect.ts";
import { announce, row, run, type Tx } from "../../sql/operation.ts";
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

/** The columns that change while an effect is claimed, released and settled. */
interface ChangingColumns {
  readonly status: string;
  readonly fence: number;
  readonly process: OwnerId | null;
  readonly token: string | null;
  readonly claimedAt: number | null;
  readonly renewedAt: number | null;
  readonly expiresAt: number | null;
  readonly settledAt: number | null;
  readonly isTransient: number | null;
  readonly outcome: Encoded | null;
  /** The checksum of the outcome. */
  readonly checksum: string | null;
}

/**
 * The columns of `holdfast_effect` that operations read. The envelope is read only where it is
 * needed.
 */
export interface EffectRow extends ChangingColumns {
  readonly key: number;
  readonly hash: string;
  readonly dueAt: number | null;
}

/** All of them but the outcome, which may be large. */
export const columnsWithoutOutcome: Statement = sql`
  key, hash, status, due_at AS "dueAt", fence, process, token, claimed_at AS "claimedAt",
  renewed_at AS "renewedAt", expires_at AS "expiresAt", settled_at AS "settledAt",
  is_transient AS "isTransient", checksum`;

export const effectColumns: Statement = sql`${columnsWithoutOutcome}, outcome`;

/** A change of a row. Parts of a claim or an outcome that it does not name become null. */
export type EffectChange = Pick<ChangingColumns, "fence"> & Partial<ChangingColumns>;

/** The columns of an outcome. */
export function settledColumns(
  { status, isTransient, value }: EffectOutcome,
  settledAt: number,
): Pick<ChangingColumns, "status" | "isTransient" | "outcome" | "checksum"> & {
  readonly settledAt: number;
} {
  const { text: outcome, checksum } = value;
  return { status, settledAt, isTransient: isTransient ? 1 : 0, outcome, checksum };
}

/** Inserts the row of a new effect; undefined when the row exists. */
export function* insertEffect(
  session: number,
  effect: EffectRequest,
  now: number,
  to: EffectChange,
): Tx<number | undefined> {
  const { scope, replayKey, attempt, kind, hash, envelope, dueAt } = effect;
  const inserted = yield* row<{ readonly key: number }>(sql`
    INSERT INTO holdfast_effect
      (session, scope_kind, scope, replay_key, attempt, kind, hash, envelope, created_at, due_at, status, fence, process,
       token, claimed_at, renewed_at, expires_at, settled_at, is_transient, outcome, checksum)
    VALUES (${session}, ${scope.kind}, ${scope.id}, ${replayKey}, ${attempt}, ${kind}, ${hash}, ${envelope}, ${now}, ${dueAt},
      ${to.status ?? "inProgress"}, ${to.fence}, ${to.process ?? null}, ${to.token ?? null}, ${to.claimedAt ?? null},
      ${to.renewedAt ?? null}, ${to.expiresAt ?? null}, ${to.settledAt ?? null}, ${to.isTransient ?? null},
      ${to.outcome ?? null}, ${to.checksum ?? null})
    ON CONFLICT (session, scope_kind, scope, replay_key, attempt) DO NOTHING RETURNING key`);
  return inserted?.key;
}

/** Changes the locked row of an effect. Waiters are notified once it is settled or not held. */
export function* changeEffect(key: number, to: EffectChange): Tx<void> {
  const { status = "inProgress", fence, token = null } = to;
  yield* run(sql`
    UPDATE holdfast_effect SET status = ${status}, fence = ${fence}, process = ${to.process ?? null}, token = ${token},
      claimed_at = ${to.claimedAt ?? null}, renewed_at = ${to.renewedAt ?? null}, expires_at = ${to.expiresAt ?? null},
      settled_at = ${to.settledAt ?? null}, is_transient = ${to.isTransient ?? null},
      outcome = ${to.outcome ?? null}, checksum = ${to.checksum ?? null}
    WHERE key = ${key}`);
  if (token === null || status !== "inProgress") yield* announce(effectChanged, String(key));
}

/** Selects one attempt of an effect in a session. */
export function whichEffect(session: number, ref: EffectRef): Statement {
  const { scope, replayKey, attempt } = ref;
  return sql`session = ${session} AND scope_kind = ${scope.kind} AND scope = ${scope.id}
    AND replay_key = ${replayKey} AND attempt = ${attempt}`;
}

/** Reads an effect and locks it until the transaction ends. */
export function* lockedEffect(where: Statement): Tx<EffectRow | undefined> {
  return yield* row<EffectRow>(sql`
    SELECT ${effectColumns} FROM holdfast_effect WHERE ${where} ${lockRow}`);
}

/** @throws HoldfastError `CORRUPT_ROW` */
export function stateOf(found: EffectRow): RecordedState;
export function stateOf(found: EffectRow | undefined): EffectState;
export function stateOf(found: EffectRow | undefined): EffectState {
  if (found === undefined) return { kind: "absent" };
  const { key, hash, dueAt, status, fence, token, settledAt, checksum } = found;
  switch (status) {
    case "inProgress":
      return { kind: "inProgress", hash, dueAt, fence, claim: claimOf(found) };
    case "completed":
    case "failed": {
      const { outcome: text } = found;
      if (text === null || checksum === null || settledAt === null || token === null)
        throw corruptEffect(key, "is settled but lacks its outcome");
      const isTransient = found.isTransient === 1;
      const value = { text, checksum };
      return { kind: "settled", hash, dueAt, status, isTransient, value, settledAt, token };
    }
    default:
      throw corruptEffect(key, "has an unknown status");
  }
}

function claimOf(found: EffectRow): HeldEffect | null {
  const { process, fence, token, claimedAt, renewedAt, expiresAt } = found;
  if (token === null) return null;
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
