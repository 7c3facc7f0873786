import type {
  SessionHandle,
  SessionMeta,
  SessionNode,
  UsageEntry,
} from "../../model/session/session.ts";
import type { Database, Durability, WaitOptions } from "../../sql/database.ts";
import { lists, type Page, type PageOptions } from "../list.ts";
import { reads, writes, type Method } from "../method.ts";
import type { SweepOptions } from "../removal.ts";
import { sessionContext, type SessionOptions } from "./context.ts";
import { forkSession, givenFork, type SessionForkOptions } from "./copy/fork.ts";
import {
  createSession,
  givenCreate,
  givenOpen,
  givenSaveMeta,
  loadMeta,
  openSession,
  saveMeta,
  type CreatedSession,
  type SessionDraft,
} from "./create.ts";
import {
  givenNode,
  givenPath,
  graphList,
  loadNode,
  readPath,
  shownLoadedNode,
  shownPath,
  type SessionPath,
  type SessionPathOptions,
} from "./graph/graph.ts";
import {
  givenTombstone,
  tombstoneNodes,
  vacuumSession,
  type TombstoneOptions,
  type TombstoneOutcome,
} from "./graph/tombstones.ts";
import type { RemovalReport } from "./parts.ts";
import {
  readCheckpoint,
  readHead,
  readSession,
  shownComponents,
  shownHead,
  shownSession,
  type LoadedSession,
  type SessionComponents,
  type SessionHead,
} from "./read/head.ts";
import { sessionList, type ListSessionsOptions, type SessionSummary } from "./read/list.ts";
import { sizesOf, type SessionSizes } from "./read/sizes.ts";
import { usageOf } from "./read/usage.ts";
import { lockSession } from "./lock.ts";
import {
  eraseSession,
  reclaimSessions,
  removeSession,
  type SessionEraseOptions,
} from "./removal.ts";
import { givenSession, type SessionName } from "../session-name.ts";
import { commitTurn, givenCommit, type TurnOutcome } from "./turn/commit.ts";
import type { TurnDraft } from "./turn/draft.ts";

type Vacuumed = {
  readonly removed: number;
  /** Removed from this session, and still shown by a fork. */
  readonly shared: number;
};

/**
 * The conversations of a database. Methods that take a session throw
 * `SESSION_NOT_FOUND` when there is none, and `SESSION_DELETED` when the
 * generation that they name is gone.
 */
export interface Sessions {
  /** What an acknowledgement promises: that of the database. */
  readonly durability: Durability;

  /**
   * Creates a session, or finds the living one of that id: `existed` is then
   * true and what was given is ignored. An id that was deleted becomes the
   * next generation.
   * @throws HoldfastError `ID_MALFORMED`, `NAME_INVALID`, `OPTION_INVALID`
   * @example
   * const handle = await sessions.create("chat-7", { name: "Travel plans" });
   */
  readonly create: Method<[id: string, meta?: SessionDraft, wait?: WaitOptions], CreatedSession>;
  /**
   * The living session of an id; undefined when there is none.
   * @throws HoldfastError `ID_MALFORMED`
   */
  readonly open: Method<[id: string, wait?: WaitOptions], SessionHandle | undefined>;
  /**
   * Makes a session that begins with another one's history up to a node, which
   * is shared and not copied, and stays readable whatever becomes of the
   * source. Repeating it finds the fork made before.
   * @throws HoldfastError `SESSION_EXISTS`, `NODE_NOT_FOUND`, `SESSION_NOT_FOUND`, `SESSION_DELETED`
   * @example
   * const draft = await sessions.fork("chat-7", "chat-7-draft", { node: "n12" });
   */
  readonly fork: Method<
    [source: SessionName, id: string, options?: SessionForkOptions],
    CreatedSession
  >;
  /**
   * Commits a turn: nodes, checkpoint, usage, consumed queue batches and
   * attachments, all of it or nothing. Safe to repeat with the same turn id
   * and content: the answer is then the one recorded, `replayed`.
   * @throws HoldfastError `LEASE_LOST`, `REVISION_CONFLICT`, `TURN_CONFLICT`, `CLAIM_LOST`, `NODE_EXISTS`,
   *   `NODE_PARENT_UNKNOWN`, `NODE_NOT_FOUND`, `ATTACHMENT_NOT_FOUND`, `TURN_INVALID`, `SESSION_MISMATCH`,
   *   `SESSION_DELETED`, `NOT_SERIALIZABLE`, `VALUE_TOO_LARGE`
   * @example
   * await sessions.commit(handle, {
   *   turn: "t7",
   *   fence: lease,
   *   nodes: [{ kind: "message", role: "assistant", payload: "done" }],
   * });
   * @example
   * const commit = sessions.commit.prepare(handle, { turn: "t7", fence: lease, nodes });
   * await database.write("answer and bill", function* () {
   *   yield* commit();
   *   yield* run(sql`INSERT INTO bill (turn, cents) VALUES (${"t7"}, ${12})`);
   * });
   */
  readonly commit: Method<
    [session: SessionHandle, turn: TurnDraft, wait?: WaitOptions],
    TurnOutcome
  >;
  /**
   * The session, locked until the transaction ends: turns, claims, leases and
   * other calls that change something of it wait until then, or came before. For
   * transactions of your own, which lock it before they read rows of theirs;
   * called by itself it only tells the revision. Lock several in the order of
   * their ids.
   * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`
   * @example
   * const lock = sessions.lock.prepare("chat-7");
   * await database.write("spend", function* () {
   *   const { revision } = yield* lock();
   *   yield* run(sql`UPDATE budget SET cents = cents - 12, revision = ${revision} WHERE session = 'chat-7'`);
   * });
   */
  readonly lock: Method<
    [session: SessionName, wait?: WaitOptions],
    SessionHandle & { readonly revision: number }
  >;

  /** What the host said about a session. @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED` */
  readonly meta: Method<
    [session: SessionName, wait?: WaitOptions],
    SessionMeta & { readonly createdAt: number }
  >;
  /**
   * Replaces all of it; the last one to save wins. What `meta` returned may be
   * handed in: its `createdAt` is ignored.
   * @throws HoldfastError `NAME_INVALID`, `OPTION_INVALID`, `SESSION_NOT_FOUND`, `SESSION_DELETED`
   * @example
   * await sessions.saveMeta("chat-7", { ...(await sessions.meta("chat-7")), name: "Rome" });
   */
  readonly saveMeta: Method<[session: SessionName, meta: SessionMeta, wait?: WaitOptions], void>;

  /**
   * Living sessions, the latest active first.
   * @throws HoldfastError `CURSOR_INVALID`, `OPTION_INVALID`
   * @example
   * const { items, next } = await sessions.list({ parent: "chat-7", limit: 20 });
   */
  readonly list: Method<[options?: ListSessionsOptions], Page<SessionSummary>>;
  /**
   * Where a session stands: revision, config, frames and leaf.
   * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`, `CORRUPT_ROW`
   */
  readonly head: Method<[session: SessionName, wait?: WaitOptions], SessionHead>;
  /**
   * Head, active path and checkpoint at one moment: what a worker needs to go on.
   * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`, `CORRUPT_ROW`
   * @example
   * const { head, path, components } = await sessions.load("chat-7", { limit: 200 });
   */
  readonly load: Method<[session: SessionName, options?: SessionPathOptions], LoadedSession>;
  /**
   * The way from a root to a leaf. Nodes that were removed end it.
   * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`, `CORRUPT_ROW`
   */
  readonly path: Method<[session: SessionName, options?: SessionPathOptions], SessionPath>;
  /**
   * Every branch, in the order of insertion.
   * @throws HoldfastError `CURSOR_INVALID`, `SESSION_NOT_FOUND`, `SESSION_DELETED`
   */
  readonly graph: Method<[session: SessionName, options?: PageOptions], Page<SessionNode>>;
  /**
   * One node; undefined when the session does not show it.
   * @throws HoldfastError `NAME_INVALID`, `SESSION_NOT_FOUND`, `SESSION_DELETED`, `CORRUPT_ROW`
   */
  readonly node: Method<
    [session: SessionName, id: string, wait?: WaitOptions],
    SessionNode | undefined
  >;
  /** All parts of the checkpoint, by name. @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`, `CORRUPT_ROW` */
  readonly components: Method<[session: SessionName, wait?: WaitOptions], SessionComponents>;
  /**
   * Sums per source and model, in the order of their first use. Reads a long
   * ledger in pages, up to the entry that was the last one at first.
   * @throws HoldfastError `USAGE_OVERFLOW`, `SESSION_NOT_FOUND`, `SESSION_DELETED`
   */
  usage(session: SessionName, wait?: WaitOptions): Promise<readonly UsageEntry[]>;
  /** What a session takes, shared blobs included. @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED` */
  sizes(session: SessionName, wait?: WaitOptions): Promise<SessionSizes>;

  /**
   * Hides nodes at once; unknown ids are ignored. Where the leaf is among them
   * the conversation goes on above it. As with a turn, only the holder of the
   * lease may, and the session gets a new revision. What is hidden already
   * needs neither: repeating it changes nothing.
   * @throws HoldfastError `LEASE_LOST`, `REVISION_CONFLICT`, `NAME_INVALID`, `OPTION_INVALID`, `SESSION_NOT_FOUND`,
   *   `SESSION_DELETED`
   * @example
   * const { revision, leaf } = await sessions.tombstone("chat-7", ["n12"], { fence: lease });
   */
  readonly tombstone: Method<
    [session: SessionName, ids: readonly string[], options: TombstoneOptions],
    TombstoneOutcome
  >;
  /**
   * Removes hidden nodes that no fork shows, in small transactions.
   * @throws HoldfastError `ABORTED`, `SESSION_NOT_FOUND`, `SESSION_DELETED`
   */
  vacuum(session: SessionName, options?: SweepOptions<Vacuumed>): Promise<Vacuumed>;
  /**
   * Deletes a session: from the first moment on it is gone for everybody and
   * its handles are fenced; what it owned is then removed in small
   * transactions. Repeating it goes on with a removal that was interrupted.
   * The id may be used again.
   * @throws HoldfastError `ABORTED`
   */
  delete(session: SessionName, options?: SweepOptions<RemovalReport>): Promise<RemovalReport>;
  /**
   * Deletes a session and every older generation of its id: payloads, blobs
   * without other owners and attachments. What is left is a tombstone: id,
   * generation, times, and the ids of processes that ran on. Erase forks too
   * when `sharedNodes` is not 0: they show those nodes. What was removed can
   * no longer be read through the database; its bytes are overwritten as the
   * file's pages are used again, on SQLite all at once by `VACUUM`, on
   * Postgres by the server's own vacuum.
   * @throws HoldfastError `ABORTED`
   */
  erase(session: SessionName, options?: SessionEraseOptions): Promise<RemovalReport>;
  /**
   * Goes on with removals that were interrupted, of any session.
   * @throws HoldfastError `ABORTED`
   */
  reclaim(options?: SweepOptions<RemovalReport>): Promise<RemovalReport>;
}

/**
 * Conversations of agents: a graph of nodes, a checkpoint in parts, a ledger
 * of usage, all of it changed by turn commits. Holds nothing, so there may be
 * any number of these over one database.
 *
 * @throws HoldfastError `OPTION_INVALID`, `DURATION_INVALID`
 */
export function sessions(database: Database, options?: SessionOptions): Sessions {
  const context = sessionContext(database, options);
  return {
    durability: database.durability,
    create: writes(context, createSession, givenCreate),
    open: reads(context, openSession, givenOpen),
    fork: writes(context, forkSession, givenFork),
    commit: writes(context, commitTurn, givenCommit),
    meta: reads(context, loadMeta, givenSession),
    lock: writes(context, lockSession, givenSession),
    saveMeta: writes(context, saveMeta, givenSaveMeta),
    list: lists(context, sessionList),
    head: reads(context, readHead, givenSession, shownHead),
    load: reads(context, readSession, givenPath, shownSession),
    path: reads(context, readPath, givenPath, shownPath),
    graph: lists(context, graphList),
    node: reads(context, loadNode, givenNode, shownLoadedNode),
    components: reads(context, readCheckpoint, givenSession, shownComponents),
    usage: (session, wait) => usageOf(context, session, wait),
    sizes: (session, wait) => sizesOf(context, session, wait),
    tombstone: writes(context, tombstoneNodes, givenTombstone),
    vacuum: (session, given) => vacuumSession(context, session, given),
    delete: (session, given) => removeSession(context, session, given),
    erase: (session, given) => eraseSession(context, session, given),
    reclaim: (given) => reclaimSessions(context, given),
  };
}
