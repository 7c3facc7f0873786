import { HoldfastError } from "../model/errors.ts";
import type { ExecutionId } from "../model/ids/execution-id.ts";
import type { SessionId } from "../model/ids/session-id.ts";
import type { SessionTurns } from "../model/session/session.ts";
import { integersOf, keepRow, lockRoot, textsOf } from "../sql/dialect.ts";
import { row, rows, run } from "../sql/operation.ts";
import type { Tx } from "../sql/operation.ts";
import { sql } from "../sql/statement.ts";
import type { Statement } from "../sql/statement.ts";

/** A session as callers name it. Without a generation it means the live one. */
export interface SessionRef {
  readonly id: SessionId;
  readonly generation?: number;
}

/** The root row of a session, whose key its other tables refer to. */
export interface SessionRoot {
  readonly key: number;
  readonly id: SessionId;
  readonly generation: number;
  readonly revision: number;
  /** The agent that takes its turns. */
  readonly agent: string | null;
  /** The number of its last turn. */
  readonly turns: number;
  /** The run of its open turn, and the instant from which that run may begin; 0 for at once. */
  readonly open_turn: ExecutionId | null;
  readonly turn_due_at: number | null;
  /**
   * The key of the last batch that was queued when the turn was opened. Null once the turn has
   * consumed work, or another agent was assigned.
   */
  readonly turn_batch: number | null;
  /** Equals `open_turn` when that turn was asked to stop. */
  readonly stop_turn: ExecutionId | null;
}

const rootColumns = sql`
  key, id, generation, revision, agent, turns, open_turn, turn_due_at, turn_batch, stop_turn`;

const rootLocked = lockRoot({
  table: "holdfast_session",
  unchanged: "revision",
  columns: rootColumns,
});

/**
 * Locks the live session until the transaction ends, so that all work on one session happens in
 * sequence. A call that changes its lease, queue or attachments comes through here. A transaction
 * with an older snapshot therefore fails at this statement (see `lockRoot`).
 *
 * @throws HoldfastError `SESSION_NOT_FOUND`, or `SESSION_DELETED` when the
 *   generation asked for is gone: its handles are fenced.
 */
export function* lockedSession(ref: SessionRef): Tx<SessionRoot> {
  if (ref.generation !== undefined && ref.generation < 0)
    return foundSession(ref, yield* importedSession(ref));
  return foundSession(ref, yield* livingLocked(ref.id));
}

function* livingLocked(id: SessionId): Tx<SessionRoot | undefined> {
  const locked = rootLocked(sql`id = ${id} AND deleted_at IS NULL`);
  // A call that waited for the lock of a deleted session does not see the next generation yet.
  return (yield* row<SessionRoot>(locked)) ?? (yield* row<SessionRoot>(locked));
}

/** Locks a session by its key; undefined for a deleted one. */
export function* lockedByKey(key: number): Tx<SessionRoot | undefined> {
  return yield* row<SessionRoot>(rootLocked(sql`key = ${key} AND deleted_at IS NULL`));
}

/** The turns of a session as callers see them. */
export function turnsOf(
  root: Pick<SessionRoot, "agent" | "turns" | "open_turn" | "stop_turn">,
): SessionTurns {
  const { agent, turns, open_turn: openTurn, stop_turn: stopTurn } = root;
  return { agent, turns, openTurn, isStopping: stopTurn !== null };
}

/** The run of a turn, as the row of its session names it. */
export interface OpenTurn {
  readonly turn: number;
  readonly id: ExecutionId;
  /** The instant from which it may begin; 0 for at once. */
  readonly dueAt: number;
  /** The key of the last batch in the queue. */
  readonly batch: number;
}

/** Opens a turn of a locked session, which replaces the one before. */
export function* writeOpenTurn(session: number, { turn, id, dueAt, batch }: OpenTurn): Tx<void> {
  yield* run(sql`
    UPDATE holdfast_session SET turns = ${turn}, open_turn = ${id}, turn_due_at = ${dueAt}, turn_batch = ${batch},
      stop_turn = NULL
    WHERE key = ${session}`);
}

/** Closes the open turn of a locked session. */
export function* clearOpenTurn(session: number): Tx<void> {
  yield* run(sql`
    UPDATE holdfast_session SET open_turn = NULL, turn_due_at = NULL, turn_batch = NULL, stop_turn = NULL
    WHERE key = ${session}`);
}

/**
 * Locks the session that a read is about, as `lockedSession` does. The read reports a missing one.
 */
export function* lockReadSession(input: SessionRef | { readonly session: SessionRef }): Tx<void> {
  yield* livingLocked("session" in input ? input.session.id : input.id);
}

/** A session that is being imported, which only its import can name. */
function* importedSession(ref: SessionRef): Tx<SessionRoot | undefined> {
  return yield* row<SessionRoot>(
    rootLocked(
      sql`id = ${ref.id} AND generation = ${ref.generation ?? 0} AND importing_at IS NOT NULL`,
    ),
  );
}

/**
 * Keeps the live session from being deleted until the transaction ends, and blocks nothing else. A
 * transaction may keep several, in any order, even after it has locked one. A call that works on a
 * session never waits for a call that keeps it.
 */
export function* keptSession(ref: SessionRef): Tx<SessionRoot> {
  const kept = sql`
    SELECT ${rootColumns} FROM holdfast_session
    WHERE id = ${ref.id} AND deleted_at IS NULL ${keepRow}`;
  return foundSession(ref, (yield* row<SessionRoot>(kept)) ?? (yield* row<SessionRoot>(kept)));
}

/** Does the same for reads, which lock nothing. */
export function* livingSession(ref: SessionRef): Tx<SessionRoot> {
  return foundSession(
    ref,
    yield* row<SessionRoot>(sql`
      SELECT ${rootColumns} FROM holdfast_session
      WHERE id = ${ref.id} AND deleted_at IS NULL`),
  );
}

/** A session of any generation by its key, tombstones included; undefined when it is unknown. */
export function* sessionByKey(key: number): Tx<SessionRoot | undefined> {
  return yield* row<SessionRoot>(sql`
    SELECT ${rootColumns} FROM holdfast_session WHERE key = ${key}`);
}

/** A session as rows of other stores refer to it. */
export interface SessionMention {
  readonly key: number;
  readonly id: SessionId;
  readonly generation: number;
  /** Not deleted and not being imported. */
  readonly isLiving: boolean;
  /** True when it was imported, together with its receipts. */
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

/** A WHERE condition that holds when the session whose key a column has is not deleted. */
export function isLivingSession(key: Statement): Statement {
  return sql`EXISTS (SELECT 1 FROM holdfast_session s WHERE s.key = ${key} AND s.deleted_at IS NULL)`;
}

/** Returns the row that was found. @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED` */
export function foundSession<Root extends SessionRoot>(
  ref: SessionRef,
  root: Root | undefined,
): Root {
  const { id, generation } = ref;
  if (root === undefined && generation === undefined)
    throw new HoldfastError(
      "SESSION_NOT_FOUND",
      `Session "${id}" does not exist. Create it first.`,
      {
        id,
      },
    );
  if (root === undefined || (generation ?? root.generation) !== root.generation)
    throw new HoldfastError(
      "SESSION_DELETED",
      `Session "${id}" of generation ${generation} was deleted; nothing was changed. Open the session again to work with the current generation.`,
      { id, generation },
    );
  return root;
}

/**
 * Tests whether the session of a key is live. It cannot be deleted then until the transaction ends.
 */
export function* isHeldLiving(key: number): Tx<boolean> {
  const found = yield* row(sql`
    SELECT key FROM holdfast_session WHERE key = ${key} AND deleted_at IS NULL ${keepRow}`);
  return found !== undefined;
}

/**
 * The generation that deleting an id means: the live one, else the last; undefined for an id that
 * was never used.
 */
export function* meantGeneration(id: SessionId): Tx<number | undefined> {
  const found = yield* row<{ readonly generation: number }>(sql`
    SELECT generation FROM holdfast_session WHERE id = ${id} AND generation > 0
    ORDER BY CASE WHEN deleted_at IS NULL THEN 0 ELSE 1 END, generation DESC LIMIT 1`);
  return found?.generation;
}

/** The keys of all generations of a session, tombstones included. */
export function* generationKeys(id: SessionId): Tx<readonly number[]> {
  const found = yield* rows<{ readonly key: number }>(sql`
    SELECT key FROM holdfast_session WHERE id = ${id}`);
  return found.map(({ key }) => key);
}

/** The existing generations of some ids, tombstones included, as `id/generation`. */
export function* generationsThere(ids: readonly string[]): Tx<ReadonlySet<string>> {
  if (ids.length === 0) return new Set();
  const found = yield* rows<{ readonly id: string; generation: number }>(sql`
    SELECT id, generation FROM holdfast_session WHERE id IN ${textsOf(ids)}`);
  return new Set(found.map(({ id, generation }) => `${id}/${generation}`));
}
