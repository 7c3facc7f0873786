import { corruptRow } from "../../model/corrupt-row.ts";
import { HoldfastError } from "../../model/errors.ts";
import { parseSessionId, type SessionId } from "../../model/ids/session-id.ts";
import { parseAgent } from "../../model/session/agent.ts";
import type { SessionHandle, SessionMeta, SessionRelation } from "../../model/session/session.ts";
import { checkedText, draftOf, givenInvalid, optionalText } from "../../model/shape.ts";
import type { WaitOptions } from "../../sql/database.ts";
import { row, run, storeOperation, type StoreOperation, type Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { beginFenceAfter } from "../lease/lease-row.ts";
import { onlyWait, type Call } from "../method.ts";
import type { SessionContext } from "./context.ts";
import { sessionNamed, type SessionName } from "../session-name.ts";
import { generationKeys, livingSession, lockedSession, type SessionRef } from "../session-row.ts";

/** The caller's description of a new session. */
export interface SessionDraft {
  /** Defaults to its id. */
  readonly name?: string;
  readonly model?: string | null;
  readonly cwd?: string | null;
  /**
   * The agent that takes the turns of the session: work in its queue starts a run of the function
   * `agent/<name>`. Defaults to none.
   */
  readonly agent?: string | null;
  /** Defaults to root. */
  readonly relation?:
    | { readonly kind: "root" }
    | {
        readonly kind: "child";
        readonly of: string;
        readonly causedBy?: string | null;
      };
}

export interface CreatedSession extends SessionHandle {
  /** True when it existed already; the given meta was then ignored. */
  readonly existed: boolean;
}

interface NewSession {
  readonly id: SessionId;
  readonly at: number;
  readonly meta: SessionMeta;
  readonly agent: string | null;
}

const metaNames = ["name", "model", "cwd", "relation"] as const;
const draftNames = [...metaNames, "agent"] as const;
const nameCharactersMax = 512;
const pathCharactersMax = 4_096;

/** @throws HoldfastError `ID_MALFORMED`, `NAME_INVALID`, `OPTION_INVALID` */
export function givenCreate(
  { clock }: SessionContext,
  id: string,
  draft: SessionDraft = {},
  wait?: WaitOptions,
): Call<NewSession> {
  const input = {
    id: parseSessionId(id),
    at: clock.now(),
    meta: newMeta(id, draft),
    agent: newAgent(draft),
  };
  return { input, wait: onlyWait(wait) };
}

/** The agent of a new session. @throws HoldfastError `NAME_INVALID` */
export function newAgent({ agent }: SessionDraft): string | null {
  return agent === undefined || agent === null ? null : parseAgent(agent);
}

/** Completes the description of a new session. */
export function newMeta(id: string, draft: SessionDraft): SessionMeta {
  const { name = id, model, cwd, relation } = draftOf("meta", draft, draftNames);
  return {
    name: checkedText("The name of a session", name, nameCharactersMax),
    model: optionalText("A model", model, nameCharactersMax),
    cwd: optionalText("A working directory", cwd, pathCharactersMax),
    relation: relation === undefined ? { kind: "root" } : checkedRelation(relation),
  };
}

function checkedRelation(given: NonNullable<SessionDraft["relation"]>): SessionRelation {
  const relation = draftOf<{
    kind: string;
    of?: string;
    causedBy?: string | null;
  }>("meta.relation", given, ["kind", "of", "causedBy"]);
  const { kind, of, causedBy } = relation;
  if (kind === "root") return { kind };
  if (kind !== "child") throw givenInvalid("meta.relation.kind", '"root" or "child"', kind);
  return {
    kind,
    of: parseSessionId(of as string),
    causedBy: optionalText("A cause", causedBy, pathCharactersMax),
  };
}

/**
 * Creates a session, or returns the live one with this id, which keeps all its data. A deleted id
 * becomes the next generation.
 */
export const createSession = storeOperation("createSession", {
  key: (input) => input.id,
  *one(_: SessionContext, input: NewSession): Tx<CreatedSession> {
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
 * Inserts the row of a new generation; undefined when another call has inserted one in between. A
 * generation below 0 is being imported.
 */
export function* insertSession(
  { id, at, meta, agent }: NewSession,
  imported?: number,
): Tx<{ readonly key: number; readonly generation: number } | undefined> {
  const { relation } = meta;
  const importing = imported === undefined ? null : at;
  const generation = imported ?? (yield* lastGeneration(id)) + 1;
  return yield* row<{ readonly key: number; readonly generation: number }>(sql`
    INSERT INTO holdfast_session
      (id, generation, created_at, deleted_at, importing_at, name, model, cwd, parent, caused_by,
       revision, node_count, user_message_count, active_at, agent)
    VALUES (${id}, ${generation}, ${at}, ${importing}, ${importing}, ${meta.name}, ${meta.model}, ${meta.cwd},
       ${relation.kind === "child" ? relation.of : null}, ${relation.kind === "child" ? relation.causedBy : null},
       0, 0, 0, ${at}, ${agent})
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
    `Other callers created and deleted session "${id}" during this call. Retry it.`,
    { id },
  );
}

function* livingHandle(id: SessionId): Tx<SessionHandle | undefined> {
  return yield* row<SessionHandle & object>(sql`
    SELECT id, generation FROM holdfast_session WHERE id = ${id} AND deleted_at IS NULL`);
}

/** @throws HoldfastError `ID_MALFORMED` */
export function givenOpen(
  _: SessionContext,
  id: string,
  wait?: WaitOptions,
): Call<{ readonly id: SessionId }> {
  return { input: { id: parseSessionId(id) }, wait: onlyWait(wait) };
}

/** Returns the live session with an id; undefined when there is none. */
export const openSession: StoreOperation<
  SessionContext,
  { readonly id: SessionId },
  SessionHandle | undefined
> = storeOperation("openSession", {
  key: (input: { readonly id: SessionId }) => input.id,
  one: (_: SessionContext, { id }) => livingHandle(id),
});

interface MetaRow {
  readonly name: string | null;
  readonly model: string | null;
  readonly cwd: string | null;
  readonly parent: SessionId | null;
  readonly caused_by: string | null;
  readonly created_at: number;
}

interface StoredMeta extends SessionMeta {
  readonly createdAt: number;
}

/**
 * Returns the host's metadata of a session.
 * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`
 */
export const loadMeta: StoreOperation<SessionContext, SessionRef, StoredMeta> = storeOperation(
  "loadMeta",
  {
    key: (input: SessionRef) => input.id,
    one: (_: SessionContext, ref) => metaOf(ref),
  },
);

export function* metaOf(ref: SessionRef): Tx<StoredMeta> {
  const { key } = yield* livingSession(ref);
  const found = yield* row<MetaRow>(sql`
    SELECT name, model, cwd, parent, caused_by, created_at FROM holdfast_session WHERE key = ${key}`);
  if (found === undefined || found.name === null)
    throw corruptRow("holdfast_session", key, "has no name");
  const { name, model, cwd, created_at: createdAt } = found;
  return { name, model, cwd, relation: relationOf(found), createdAt };
}

export function relationOf(found: {
  readonly parent: SessionId | null;
  readonly caused_by: string | null;
}): SessionRelation {
  return found.parent === null
    ? { kind: "root" }
    : { kind: "child", of: found.parent, causedBy: found.caused_by };
}

interface SaveMeta {
  readonly session: SessionRef;
  readonly meta: SessionMeta;
}

/** @throws HoldfastError `NAME_INVALID`, `OPTION_INVALID`, `ID_MALFORMED` */
export function givenSaveMeta(
  _: SessionContext,
  session: SessionName,
  meta: SessionMeta,
  wait?: WaitOptions,
): Call<SaveMeta> {
  // Accepts the result of `meta` unchanged.
  const { name, model, cwd, relation } = draftOf<Partial<StoredMeta>>("meta", meta, [
    ...metaNames,
    "createdAt",
  ]);
  const input = {
    session: sessionNamed(session),
    meta: {
      name: checkedText("The name of a session", name as string, nameCharactersMax),
      model: optionalText("A model", model, nameCharactersMax),
      cwd: optionalText("A working directory", cwd, pathCharactersMax),
      relation: checkedRelation(relation as SessionRelation),
    },
  };
  return { input, wait: onlyWait(wait) };
}

/**
 * Replaces the host's metadata; the last save wins.
 * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`
 */
export const saveMeta = storeOperation("saveMeta", {
  key: (input) => input.session.id,
  *one(_: SessionContext, { session, meta }: SaveMeta): Tx<void> {
    const { key } = yield* lockedSession(session);
    const { name, model, cwd, relation } = meta;
    yield* run(sql`
      UPDATE holdfast_session SET name = ${name}, model = ${model}, cwd = ${cwd},
        parent = ${relation.kind === "child" ? relation.of : null},
        caused_by = ${relation.kind === "child" ? relation.causedBy : null}
      WHERE key = ${key}`);
  },
});

interface FollowSession {
  readonly id: SessionId;
  /** The highest generation and fence that this session may have had in another database. */
  readonly last: number;
  readonly at: number;
}

/**
 * Lets a session that is new to this database continue from another one: inserts the tombstone that
 * would be here. Does nothing when this database knows the session already.
 */
export const followSession = storeOperation("followSession", {
  key: (input) => input.id,
  *one(_: SessionContext, { id, last, at }: FollowSession): Tx<void> {
    const known = yield* generationKeys(id);
    if (last === 0 || known.length > 0) return;
    const made = yield* row<{ readonly key: number }>(sql`
      INSERT INTO holdfast_session
        (id, generation, created_at, deleted_at, reclaimed_at, revision, node_count, user_message_count, active_at)
      VALUES (${id}, ${last}, ${at}, ${at}, ${at}, 0, 0, 0, ${at})
      ON CONFLICT DO NOTHING RETURNING key`);
    if (made !== undefined) yield* beginFenceAfter(made.key, last);
  },
});
