import { HoldfastError } from "../../model/errors.ts";
import type { SessionId } from "../../model/session-id.ts";
import type {
  SessionHandle,
  SessionMeta,
  SessionRelation,
} from "../../model/session.ts";
import { corruptRow } from "../../model/corrupt-row.ts";
import { row, run, plainOperation } from "../../sql/operation.ts";
import type { Operation, Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { livingSession, lockedSession } from "./session-row.ts";
import type { SessionRef } from "./session-row.ts";

export interface NewSession {
  readonly id: SessionId;
  readonly at: number;
  readonly meta: SessionMeta;
}

export interface CreatedSession extends SessionHandle {
  /** True when it was there already; what was given was then ignored. */
  readonly existed: boolean;
}

/**
 * Creates a session, or finds the living one of that id, which keeps all it
 * has. An id that was deleted becomes the next generation.
 */
export const createSession: Operation<NewSession, CreatedSession> =
  plainOperation("createSession", {
    key: (input: NewSession) => input.id,
    *one(input) {
      const living = yield* livingHandle(input.id);
      if (living !== undefined) return { ...living, existed: true };
      const created = yield* insertSession(input);
      if (created !== undefined)
        return { id: input.id, generation: created.generation, existed: false };
      const other = yield* livingHandle(input.id);
      if (other !== undefined) return { ...other, existed: true };
      throw createdAndDeleted(input.id);
    },
  });

/**
 * The row of a new generation; undefined when somebody else made one meanwhile.
 * With a generation below 0 it is one that is being imported.
 */
export function* insertSession(
  { id, at, meta }: NewSession,
  imported?: number,
): Tx<{ readonly key: number; readonly generation: number } | undefined> {
  const { relation } = meta;
  const importing = imported === undefined ? null : at;
  const generation = imported ?? (yield* lastGeneration(id)) + 1;
  return yield* row<{ readonly key: number; readonly generation: number }>(sql`
    INSERT INTO holdfast_session
      (id, generation, created_at, deleted_at, importing_at, name, model, cwd, parent, caused_by,
       revision, node_count, user_message_count, active_at)
    VALUES (${id}, ${generation}, ${at}, ${importing}, ${importing}, ${meta.name}, ${meta.model}, ${meta.cwd},
       ${relation.kind === "child" ? relation.of : null}, ${relation.kind === "child" ? relation.causedBy : null},
       0, 0, 0, ${at})
    ON CONFLICT DO NOTHING RETURNING key, generation`);
}

function* lastGeneration(id: SessionId): Tx<number> {
  const last = yield* row<{ readonly generation: number | null }>(sql`
    SELECT MAX(generation) AS generation FROM holdfast_session WHERE id = ${id} AND generation > 0`);
  return last?.generation ?? 0;
}

export function createdAndDeleted(id: SessionId): HoldfastError {
  return new HoldfastError(
    "TRANSACTION_CONFLICT",
    `Session "${id}" was created and deleted by others at this very moment. Try again.`,
    { id },
  );
}

function* livingHandle(id: SessionId): Tx<SessionHandle | undefined> {
  return yield* row<SessionHandle & object>(sql`
    SELECT id, generation FROM holdfast_session WHERE id = ${id} AND deleted_at IS NULL`);
}

/** The living session of an id, or nothing. */
export const openSession: Operation<
  { readonly id: SessionId },
  SessionHandle | undefined
> = plainOperation("openSession", {
  key: (input: { readonly id: SessionId }) => input.id,
  one: ({ id }) => livingHandle(id),
});

interface MetaRow {
  readonly name: string | null;
  readonly model: string | null;
  readonly cwd: string | null;
  readonly parent: SessionId | null;
  readonly caused_by: string | null;
  readonly created_at: number;
}

export interface StoredMeta extends SessionMeta {
  readonly createdAt: number;
}

/** What the host said about a session. @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED` */
export const loadMeta: Operation<SessionRef, StoredMeta> = plainOperation(
  "loadMeta",
  {
    key: (input: SessionRef) => input.id,
    *one(ref) {
      const { key } = yield* livingSession(ref);
      const found = yield* row<MetaRow>(sql`
        SELECT name, model, cwd, parent, caused_by, created_at FROM holdfast_session WHERE key = ${key}`);
      if (found === undefined || found.name === null)
        throw corruptRow("holdfast_session", key, "has no name");
      const { name, model, cwd, created_at: createdAt } = found;
      return { name, model, cwd, relation: relationOf(found), createdAt };
    },
  },
);

export function relationOf(found: {
  readonly parent: SessionId | null;
  readonly caused_by: string | null;
}): SessionRelation {
  return found.parent === null
    ? { kind: "root" }
    : { kind: "child", of: found.parent, causedBy: found.caused_by };
}

export interface SaveMeta {
  readonly session: SessionRef;
  readonly meta: SessionMeta;
}

/** Replaces all that the host said; the last one to save wins. @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED` */
export const saveMeta: Operation<SaveMeta, void> = plainOperation("saveMeta", {
  key: (input: SaveMeta) => input.session.id,
  *one({ session, meta }) {
    const { key } = yield* lockedSession(session);
    const { name, model, cwd, relation } = meta;
    yield* run(sql`
      UPDATE holdfast_session SET name = ${name}, model = ${model}, cwd = ${cwd},
        parent = ${relation.kind === "child" ? relation.of : null},
        caused_by = ${relation.kind === "child" ? relation.causedBy : null}
      WHERE key = ${key}`);
  },
});
