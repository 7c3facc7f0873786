import { parseSessionId } from "../../model/session-id.ts";
import type {
  SessionHandle,
  SessionMeta,
  SessionRelation,
} from "../../model/session.ts";
import {
  checkedCount,
  givenFlag,
  givenObject,
  optionsOf,
} from "../../model/shape.ts";
import type { WaitOptions } from "../../sql/database.ts";
import type { Damaged } from "../damage.ts";
import { checkedId, checkedMeta } from "./checks.ts";
import { createSession, loadMeta, openSession, saveMeta } from "./create.ts";
import type { CreatedSession, StoredMeta } from "./create.ts";
import { cursorInvalid, cursorPlace, cursorText } from "../cursor.ts";
import type { SessionSurroundings } from "./context.ts";
import { forkSession } from "./copy/fork.ts";
import { listSessions } from "./list.ts";
import type { SessionPlace, SessionSummary } from "./list.ts";
import { siftValues } from "./sifted.ts";
import { sessionNamed } from "./session-name.ts";
import type { SessionName } from "./session-name.ts";

/** What a host may say of a new session. */
export interface NewSessionMeta {
  /** Its id unless told. */
  readonly name?: string;
  readonly model?: string | null;
  readonly cwd?: string | null;
  /** Root unless told. */
  readonly relation?:
    | { readonly kind: "root" }
    | {
        readonly kind: "child";
        readonly of: string;
        readonly causedBy?: string | null;
      };
}

export interface SessionForkOptions extends WaitOptions {
  /** The node it shares history up to: the leaf unless told. */
  readonly node?: string;
  /** What differs from the source's; the relation is root unless told. */
  readonly meta?: NewSessionMeta;
  /**
   * Whether config, frames and checkpoint come along. They belong to the leaf,
   * so unless told they do when the fork is made there.
   */
  readonly withState?: boolean;
}

export interface ListSessionsOptions extends WaitOptions {
  /** Only children of this session. */
  readonly parent?: string;
  /** `next` of the page before. */
  readonly after?: string;
  /** 50 unless told. */
  readonly limit?: number;
}

export interface SessionPage {
  readonly items: readonly SessionSummary[];
  /** Rows that cannot be read, by id: the list goes on past them. */
  readonly damaged: readonly Damaged[];
  /** Where to go on; undefined at the end. */
  readonly next: string | undefined;
}

/** Sessions as a whole. */
export interface SessionCommands {
  /**
   * Creates a session, or finds the living one of that id: `existed` is then
   * true and what was given is ignored.
   * @throws HoldfastError `ID_MALFORMED`, `NAME_INVALID`
   */
  create(
    id: string,
    meta?: NewSessionMeta,
    options?: WaitOptions,
  ): Promise<CreatedSession>;
  /** The living session of an id; undefined when there is none. */
  open(id: string, options?: WaitOptions): Promise<SessionHandle | undefined>;
  /** @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED` */
  meta(session: SessionName, options?: WaitOptions): Promise<StoredMeta>;
  /** Replaces all of it; the last one to save wins. @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED` */
  saveMeta(
    session: SessionName,
    meta: SessionMeta,
    options?: WaitOptions,
  ): Promise<void>;
  /** Living sessions, the latest active first. @throws HoldfastError `CURSOR_INVALID` */
  list(options?: ListSessionsOptions): Promise<SessionPage>;
  /**
   * Makes a session that begins with another one's history up to a node, which
   * is shared and not copied. Repeating it finds the fork made before.
   * @throws HoldfastError `SESSION_EXISTS`, `NODE_NOT_FOUND`, `SESSION_NOT_FOUND`, `SESSION_DELETED`
   */
  fork(
    source: SessionName,
    id: string,
    options?: SessionForkOptions,
  ): Promise<CreatedSession>;
}

export function sessionCommands(around: SessionSurroundings): SessionCommands {
  const { database, clock, textOf } = around;
  return {
    async create(id, meta = {}, options) {
      const input = {
        id: parseSessionId(id),
        at: clock.now(),
        meta: newMeta(id, meta),
      };
      return database.write(createSession, input, options);
    },
    async open(id, options) {
      return database.read(openSession, { id: parseSessionId(id) }, options);
    },
    async meta(session, options) {
      return database.read(loadMeta, sessionNamed(session), options);
    },
    async saveMeta(session, meta, options) {
      const input = {
        session: sessionNamed(session),
        meta: checkedMeta(meta),
      };
      return database.write(saveMeta, input, options);
    },
    list: (options) => listed(around, options),
    async fork(source, id, options) {
      const { node, meta = {}, withState, ...wait } = optionsOf(options);
      const { name, model, cwd, relation } = newMeta(id, meta);
      const input = {
        source: sessionNamed(source),
        node: node === undefined ? undefined : checkedId("A node", node),
        id: parseSessionId(id),
        at: clock.now(),
        meta: {
          ...(meta.name !== undefined && { name }),
          ...(meta.model !== undefined && { model }),
          ...(meta.cwd !== undefined && { cwd }),
          ...(meta.relation !== undefined && { relation }),
        },
        withState: givenFlag("withState", withState),
        textOf,
      };
      return database.write(forkSession, input, wait);
    },
  };
}

function newMeta(id: string, meta: NewSessionMeta): SessionMeta {
  const { name = id, model = null, cwd = null } = givenObject("meta", meta);
  const { relation = { kind: "root" } } = meta;
  // Its parts are checked there, whatever they are.
  return checkedMeta({
    name,
    model,
    cwd,
    relation: relation as SessionRelation,
  });
}

async function listed(
  { database, decode }: SessionSurroundings,
  options?: ListSessionsOptions,
): Promise<SessionPage> {
  const {
    parent: given,
    after,
    limit: wanted = 50,
    ...wait
  } = optionsOf(options);
  const limit = checkedCount("limit", wanted, { min: 1, max: 1_000 });
  const parent = given === undefined ? undefined : parseSessionId(given);
  const owner = `sessions:${parent ?? ""}`;
  const before = after === undefined ? undefined : placeOf(owner, after);
  const found = await database.read(
    listSessions,
    { parent, before, limit },
    wait,
  );
  const page = found.slice(0, limit);
  const last = page.at(-1);
  const { items, damaged } = siftValues(
    "holdfast_session",
    page,
    (session) => ({
      ...session,
      firstUserMessage:
        session.firstUserMessage === null
          ? ""
          : String(decode(session.firstUserMessage)),
    }),
  );
  return {
    items,
    damaged,
    next:
      found.length > limit && last !== undefined
        ? cursorText(owner, [last.activeAt, last.id])
        : undefined,
  };
}

function placeOf(owner: string, cursor: string): SessionPlace {
  const [activeAt, id] = cursorPlace(owner, cursor);
  if (!Number.isSafeInteger(activeAt) || typeof id !== "string")
    throw cursorInvalid("malformed");
  return { activeAt: activeAt as number, id };
}
