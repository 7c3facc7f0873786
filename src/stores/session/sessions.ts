import type {
  SessionHandle,
  SessionMeta,
  SessionNode,
  SessionTurns,
  UsageEntry,
} from "../../model/session/session.ts";
import type { Database, Durability, WaitOptions } from "../../sql/database.ts";
import { lists, type Page } from "../list.ts";
import { readsLocking, writes, type Method } from "../method.ts";
import type { SweepOptions } from "../removal.ts";
import { sessionContext, sharedOptions, type SessionOptions } from "./context.ts";
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
  loadNode,
  readPath,
  shownLoadedNode,
  shownPath,
  type SessionPath,
  type SessionPathOptions,
} from "./graph/graph.ts";
import { graphList, type GraphOptions } from "./graph/listing.ts";
import { givenNodes, loadNodes, shownLoadedNodes } from "./graph/nodes.ts";
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
import { assignAgent, givenAssign } from "./assign.ts";
import { stopOpenTurn, type StopOptions, type StopOutcome } from "./stop.ts";
import { executions } from "../execution/executions.ts";
import { ownSignal } from "../execution/parts.ts";
import { lockSession, type LockedSession } from "./lock.ts";
import {
  eraseSession,
  reclaimSessions,
  removeSession,
  type SessionEraseOptions,
} from "./removal.ts";
import { givenSession, type SessionName } from "../session-name.ts";
import { commitTurn, givenCommit, type TurnOutcome } from "./turn/commit.ts";
import type { TurnDraft } from "./turn/draft.ts";
import { lockReadSession } from "../session-row.ts";

const reads = readsLocking(lockReadSession);

type Vacuumed = {
  readonly removed: number;
  /** Nodes that this session no longer shows and a fork still does. */
  readonly shared: number;
};

/**
 * The conversations of a database. Methods that take a session throw `SESSION_NOT_FOUND` for an
 * unknown one, and `SESSION_DELETED` when the named generation was deleted.
 */
export interface Sessions {
  /** The durability of an acknowledged call. It is that of the database. */
  readonly durability: Durability;

  /**
   * Creates a session, or returns the existing one with that id. `existed` is then true, and the
   * given meta is ignored. Creating a deleted id again starts its next generation.
   * @throws HoldfastError `ID_MALFORMED`, `NAME_INVALID`, `OPTION_INVALID`
   * @example
   * const handle = await sessions.create("chat-7", { name: "Travel plans" });
   */
  readonly create: Method<[id: string, meta?: SessionDraft, wait?: WaitOptions], CreatedSession>;
  /**
   * Returns the live session with this id; undefined when there is none.
   * @throws HoldfastError `ID_MALFORMED`
   */
  readonly open: Method<[id: string, wait?: WaitOptions], SessionHandle | undefined>;
  /**
   * Creates a session that begins with the history of another session up to a node. The history is
   * shared, not copied, and stays readable even after the source is deleted. A repeated call
   * returns the same fork.
   * @throws HoldfastError `SESSION_EXISTS`, `NODE_NOT_FOUND`, `SESSION_NOT_FOUND`, `SESSION_DELETED`
   * @example
   * const draft = await sessions.fork("chat-7", "chat-7-draft", { node: "n12" });
   */
  readonly fork: Method<
    [source: SessionName, id: string, options?: SessionForkOptions],
    CreatedSession
  >;
  /**
   * Commits a turn atomically: nodes, checkpoint, usage, consumed queue batches and attachments.
   * The caller holds the session's lease, or the commit is part of a transaction of the run that
   * takes the open turn. Such a run passes no fence; with `release` it gives the turn up.
   * Safe to repeat with the same turn id and content: the recorded answer is returned with
   * `replayed`.
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
   * Locks a session until the transaction ends. Turns, claims, leases and other calls that change
   * the session run before or after that transaction. Use it in a transaction of your own, before
   * you read rows of your own tables. Outside a transaction it only returns the revision. Reads of
   * one session lock it too when they are part of a write. Lock several sessions in the order of their ids.
   * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`
   * @example
   * const lock = sessions.lock.prepare("chat-7");
   * await database.write("spend", function* () {
   *   const { revision } = yield* lock();
   *   yield* run(sql`UPDATE budget SET cents = cents - 12, revision = ${revision} WHERE session = 'chat-7'`);
   * });
   */
  readonly lock: Method<[session: SessionName, wait?: WaitOptions], LockedSession>;
  /**
   * Gives the turns of a session to an agent; null gives them back to the host. Work that waits in
   * the queue starts a turn at once. An open turn continues as the one who began it.
   * @throws HoldfastError `NAME_INVALID`, `SESSION_NOT_FOUND`, `SESSION_DELETED`
   * @example
   * await sessions.assign("chat-7", "support");
   */
  readonly assign: Method<
    [session: SessionName, agent: string | null, wait?: WaitOptions],
    SessionTurns
  >;

  /**
   * Returns the metadata that the host saved for a session.
   * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`
   */
  readonly meta: Method<
    [session: SessionName, wait?: WaitOptions],
    SessionMeta & { readonly createdAt: number }
  >;
  /**
   * Replaces all metadata; the last save wins. Accepts the result of `meta`, and ignores its
   * `createdAt`.
   * @throws HoldfastError `NAME_INVALID`, `OPTION_INVALID`, `SESSION_NOT_FOUND`, `SESSION_DELETED`
   * @example
   * await sessions.saveMeta("chat-7", { ...(await sessions.meta("chat-7")), name: "Rome" });
   */
  readonly saveMeta: Method<[session: SessionName, meta: SessionMeta, wait?: WaitOptions], void>;

  /**
   * Asks the open turn of an agent to stop: marks it (`isStopping` of `lock` and `head`) and sends
   * its run the signal `holdfast/stop`, in one transaction. A turn that reads the mark in the
   * transaction of its commit therefore never misses a stop that was answered `stopping`.
   * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`, `NAME_INVALID`, `ID_MALFORMED`
   * @example
   * await sessions.stop("chat-7", { reason: "the user pressed stop" });
   */
  stop(session: SessionName, options?: StopOptions): Promise<StopOutcome>;
  /**
   * Lists the live sessions, most recently active first.
   * @throws HoldfastError `CURSOR_INVALID`, `OPTION_INVALID`
   * @example
   * const { items, next } = await sessions.list({ parent: "chat-7", limit: 20 });
   */
  readonly list: Method<[options?: ListSessionsOptions], Page<SessionSummary>>;
  /**
   * Returns the current state of a session: revision, config, frames and leaf.
   * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`, `CORRUPT_ROW`
   */
  readonly head: Method<[session: SessionName, wait?: WaitOptions], SessionHead>;
  /**
   * Returns head, active path and checkpoint in one snapshot: everything a worker needs to resume
   * the session.
   * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`, `CORRUPT_ROW`
   * @example
   * const { head, path, components } = await sessions.load("chat-7", { limit: 200 });
   */
  readonly load: Method<[session: SessionName, options?: SessionPathOptions], LoadedSession>;
  /**
   * Returns the path from a root to a leaf. Removed nodes end it.
   * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`, `CORRUPT_ROW`
   */
  readonly path: Method<[session: SessionName, options?: SessionPathOptions], SessionPath>;
  /**
   * Lists the nodes of all branches, in insertion order or newest first.
   * @throws HoldfastError `CURSOR_INVALID`, `OPTION_INVALID`, `NAME_INVALID`, `SESSION_NOT_FOUND`, `SESSION_DELETED`
   * @example
   * const { items } = await sessions.graph("chat-7", { order: "newest", kind: "message", payloads: false });
   */
  readonly graph: Method<[session: SessionName, options?: GraphOptions], Page<SessionNode>>;
  /**
   * Returns one node; undefined when the session does not show it.
   * @throws HoldfastError `NAME_INVALID`, `SESSION_NOT_FOUND`, `SESSION_DELETED`, `CORRUPT_ROW`
   */
  readonly node: Method<
    [session: SessionName, id: string, wait?: WaitOptions],
    SessionNode | undefined
  >;
  /**
   * Returns the named nodes that the session shows, in the order of the ids: 100 at most.
   * @throws HoldfastError `NAME_INVALID`, `OPTION_INVALID`, `SESSION_NOT_FOUND`, `SESSION_DELETED`, `CORRUPT_ROW`
   */
  readonly nodes: Method<
    [session: SessionName, ids: readonly string[], wait?: WaitOptions],
    readonly SessionNode[]
  >;
  /**
   * Returns all parts of the checkpoint, by name.
   * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`, `CORRUPT_ROW`
   */
  readonly components: Method<[session: SessionName, wait?: WaitOptions], SessionComponents>;
  /**
   * Sums usage per source and model, in the order of first use. Entries whose counts are all zero
   * are left out. Reads a long ledger in pages, up to the entry that was the last when the call
   * began.
   * @throws HoldfastError `USAGE_OVERFLOW`, `SESSION_NOT_FOUND`, `SESSION_DELETED`
   */
  usage(session: SessionName, wait?: WaitOptions): Promise<readonly UsageEntry[]>;
  /**
   * Returns the storage of a session, shared blobs included.
   * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`
   */
  sizes(session: SessionName, wait?: WaitOptions): Promise<SessionSizes>;

  /**
   * Hides nodes at once and ignores unknown ids. If the leaf is hidden, the conversation continues
   * from its nearest visible ancestor. Like a turn, it needs the lease and gives the session a new
   * revision. For nodes that are already hidden it does neither, so a repeated call changes nothing.
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
   * Deletes a session. It disappears for all callers at once, and its handles are fenced. The run of
   * an open turn is asked to end. Its data is then removed in small transactions; a repeated call resumes an interrupted removal. The id
   * can be used again.
   * @throws HoldfastError `ABORTED`
   */
  delete(session: SessionName, options?: SweepOptions<RemovalReport>): Promise<RemovalReport>;
  /**
   * Deletes a session and all older generations of its id: payloads, attachments, and blobs without
   * other owners. The runs of its turns are ended by force and erased, and so are the sessions
   * below it. A repeated call resumes an interrupted one. A tombstone remains: id, generation, times, and the ids of processes that were
   * still running. Erase forks too when `sharedNodes` is not 0, since they show those nodes.
   * Removed data can no longer be read through the database. Its bytes are overwritten when the
   * file's pages are reused; to overwrite them at once, run `VACUUM` on SQLite. On Postgres the
   * server's own vacuum does it.
   * @throws HoldfastError `ABORTED`, or `SESSION_OWNED` for a session below a live one
   */
  erase(session: SessionName, options?: SessionEraseOptions): Promise<RemovalReport>;
  /**
   * Resumes interrupted removals of all sessions.
   * @throws HoldfastError `ABORTED`
   */
  reclaim(options?: SweepOptions<RemovalReport>): Promise<RemovalReport>;
}

/**
 * Conversations of agents: a graph of nodes, a checkpoint in parts and a ledger of usage. Turn
 * commits change all of them. The returned object has no state, so one database can have any
 * number of them.
 *
 * @throws HoldfastError `OPTION_INVALID`, `DURATION_INVALID`
 */
export function sessions(database: Database, options?: SessionOptions): Sessions {
  const context = sessionContext(database, options);
  const runs = executions(database, sharedOptions(options));
  const signalRun = ownSignal(database, sharedOptions(options));
  return {
    durability: database.durability,
    create: writes(context, createSession, givenCreate),
    open: reads(context, openSession, givenOpen),
    fork: writes(context, forkSession, givenFork),
    commit: writes(context, commitTurn, givenCommit),
    meta: reads(context, loadMeta, givenSession),
    lock: writes(context, lockSession, givenSession),
    assign: writes(context, assignAgent, givenAssign),
    stop: (session, given) => stopOpenTurn(context, signalRun, session, given),
    saveMeta: writes(context, saveMeta, givenSaveMeta),
    list: lists(context, sessionList),
    head: reads(context, readHead, givenSession, shownHead),
    load: reads(context, readSession, givenPath, shownSession),
    path: reads(context, readPath, givenPath, shownPath),
    graph: lists(context, graphList, lockReadSession),
    node: reads(context, loadNode, givenNode, shownLoadedNode),
    nodes: reads(context, loadNodes, givenNodes, shownLoadedNodes),
    components: reads(context, readCheckpoint, givenSession, shownComponents),
    usage: (session, wait) => usageOf(context, session, wait),
    sizes: (session, wait) => sizesOf(context, session, wait),
    tombstone: writes(context, tombstoneNodes, givenTombstone),
    vacuum: (session, given) => vacuumSession(context, session, given),
    delete: (session, given) => removeSession(context, runs, session, given),
    erase: (session, given) => eraseSession(context, runs, session, given),
    reclaim: (given) => reclaimSessions(context, given),
  };
}
