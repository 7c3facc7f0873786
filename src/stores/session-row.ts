import { HoldfastError } from "../model/errors.ts";
import type { SessionId } from "../model/ids/session-id.ts";
import { integersOf, keepRow, lockRoot, textsOf } from "../sql/dialect.ts";
import { row, rows } from "../sql/operation.ts";
import type { Tx } from "../sql/operation.ts";
import { sql } from "../sql/statement.ts";
import type { Statement } from "../sql/statement.ts";

/** A session as callers name it. Without a generation the living one is meant. */
export interface SessionRef {
  readonly id: SessionId;
  readonly generation?: number;
}

/** The root row of a session: what its other tables refer to by key. */
export interface SessionRoot {
  readonly key: number;
  readonly id: SessionId;
  readonly generation: number;
  readonly revision: number;
}

const rootColumns = sql`key, id, generation, revision`;

const rootLocked = lockRoot({
  table: "holdfast_session",
  unchanged: "revision",
  columns: rootColumns,
});

/**
 * The living session, locked until the transaction ends, so that everything
 * that concerns one session happens one after the other. A call that changes its
 * lease, queue or attachments comes through here, so that a transaction with
 * an older snapshot notices at this very statement (see `lockRoot`).
 *
 * @throws HoldfastError `SESSION_NOT_FOUND`, or `SESSION_DELETED` when the
 *   generation asked for is gone: its handles are fenced.
 */
export function* lockedSession(ref: SessionRef): Tx<SessionRoot> {
  if (ref.generation !== undefined && ref.generation < 0)
    return foundSession(ref, yield* importedSession(ref));
  const locked = rootLocked(sql`id = ${ref.id} AND deleted_at IS NULL`);
  // A call that has waited for one that was deleted does not see the next generation yet.
  return foundSession(ref, (yield* row<SessionRoot>(locked)) ?? (yield* row<SessionRoot>(locked)));
}

/** One that is being imported, which only its import can name. */
function* importedSession(ref: SessionRef): Tx<SessionRoot | undefined> {
  return yield* row<SessionRoot>(
    rootLocked(
      sql`id = ${ref.id} AND generation = ${ref.generation ?? 0} AND importing_at IS NOT NULL`,
    ),
  );
}

/**
 * The living session, kept from being deleted until the transaction ends, and
 * from nothing else. A transaction may keep several, in any order, also after
 * it has locked one: a call that works on a session never waits for one that keeps it.
 */
export function* keptSession(ref: SessionRef): Tx<SessionRoot> {
  const kept = sql`
    SELECT ${rootColumns} FROM holdfast_session
    WHERE id = ${ref.id} AND deleted_at IS NULL ${keepRow}`;
  return foundSession(ref, (yield* row<SessionRoot>(kept)) ?? (yield* row<SessionRoot>(kept)));
}

/** The same for reads, which lock nothing. */
export function* livingSession(ref: SessionRef): Tx<SessionRoot> {
  return foundSession(
    ref,
    yield* row<SessionRoot>(sql`
      SELECT ${rootColumns} FROM holdfast_session
      WHERE id = ${ref.id} AND deleted_at IS NULL`),
  );
}

/** A session of any generation by its key, which a deleted one has too; undefined when there is none. */
export function* sessionByKey(key: number): Tx<SessionRoot | undefined> {
  return yield* row<SessionRoot>(sql`
    SELECT ${rootColumns} FROM holdfast_session WHERE key = ${key}`);
}

/** A session as rows of other stores refer to it. */
export interface SessionMention {
  readonly key: number;
  readonly id: SessionId;
  readonly generation: number;
  /** Not deleted, and not being imported. */
  readonly isLiving: boolean;
  /** It came from elsewhere, and its receipts with it. */
  readonly isImported: boolean;
}

/** Sessions of any generation by their keys, for rows that refer to them. */
export function* sessionsOfKeys(keys: readonly number[]): Tx<ReadonlyMap<number, SessionMention>> {
  if (keys.length === 0) return new Map();
  const found = yield* rows<
    SessionRoot & { readonly deleted_at: number | null; origin: string | null }
  >(sql`
    SELECT key, id, generation, deleted_at, origin FROM holdfast_session WHERE key IN ${integersOf(keys)}`);
  return new Map(
    found.map(({ key, id, generation, deleted_at: deletedAt, origin }) => [
      key,
      {
        key,
        id,
        generation,
        isLiving: deletedAt === null,
        isImported: origin !== null,
      },
    ]),
  );
}

/** True in a WHERE when the session that a column names by its key is not deleted. */
export function isLivingSession(key: Statement): Statement {
  return sql`EXISTS (SELECT 1 FROM holdfast_session s WHERE s.key = ${key} AND s.deleted_at IS NULL)`;
}

/** The row that was looked for. @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED` */
export function foundSession<Root extends SessionRoot>(
  ref: SessionRef,
  root: Root | undefined,
): Root {
  const { id, generation } = ref;
  if (root === undefined && generation === undefined)
    throw new HoldfastError("SESSION_NOT_FOUND", `There is no session "${id}". Create it first.`, {
      id,
    });
  if (root === undefined || (generation ?? root.generation) !== root.generation)
    throw new HoldfastError(
      "SESSION_DELETED",
      `Session "${id}" of generation ${generation} was deleted; nothing was changed. Open the session again to work with what is there now.`,
      { id, generation },
    );
  return root;
}

/** Whether the session of a key lives; it is not deleted then until the transaction ends. */
export function* isHeldLiving(key: number): Tx<boolean> {
  const found = yield* row(sql`
    SELECT key FROM holdfast_session WHERE key = ${key} AND deleted_at IS NULL ${keepRow}`);
  return found !== undefined;
}

/** The generation that deleting an id means: the one that lives, else the last; undefined when there never was one. */
export function* meantGeneration(id: SessionId): Tx<number | undefined> {
  const found = yield* row<{ readonly generation: number }>(sql`
    SELECT generation FROM holdfast_session WHERE id = ${id} AND generation > 0
    ORDER BY CASE WHEN deleted_at IS NULL THEN 0 ELSE 1 END, generation DESC LIMIT 1`);
  return found?.generation;
}

/** The keys of all generations of a session, tombstones too. */
export function* generationKeys(id: SessionId): Tx<readonly number[]> {
  const found = yield* rows<{ readonly key: number }>(sql`
    SELECT key FROM holdfast_session WHERE id = ${id}`);
  return found.map(({ key }) => key);
}

/** The generations there are of some ids, deleted ones too, as `id/generation`. */
export function* generationsThere(ids: readonly string[]): Tx<ReadonlySet<string>> {
  if (ids.length === 0) return new Set();
  const found = yield* rows<{ readonly id: string; generation: number }>(sql`
    SELECT id, generation FROM holdfast_session WHERE id IN ${textsOf(ids)}`);
  return new Set(found.map(({ id, generation }) => `${id}/${generation}`));
}
