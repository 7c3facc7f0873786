import { isUserMessage } from "../../../model/session/ancestry.ts";
import { nodeNotFound, sessionExists } from "../../../model/session/errors.ts";
import { parseSessionId, type SessionId } from "../../../model/ids/session-id.ts";
import type { SessionMeta } from "../../../model/session/session.ts";
import { givenFlag } from "../../../model/shape.ts";
import type { WaitOptions } from "../../../sql/database.ts";
import { row, rows, run, storeOperation, type Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { shareAttachments } from "../../attachment/attachment-row.ts";
import { holdBlobs } from "../../blob/blob-row.ts";
import { optionsAndWait, type Call } from "../../method.ts";
import type { SessionContext } from "../context.ts";
import {
  createdAndDeleted,
  insertSession,
  newAgent,
  newMeta,
  type CreatedSession,
  type SessionDraft,
} from "../create.ts";
import { topmostFrom, type Ancestor } from "../graph/ancestors.ts";
import { firstUserMessage } from "../graph/tombstones.ts";
import { leafOf, lockedHead, type SessionHeadRow } from "../head-row.ts";
import { shownNode, type NamedPoint } from "../node-row.ts";
import { checkedId, sessionNamed, type SessionName } from "../../session-name.ts";
import type { SessionRef } from "../../session-row.ts";

export interface SessionForkOptions extends WaitOptions {
  /** The last shared node; defaults to the leaf. */
  readonly node?: string;
  /** Differences from the source's metadata; the relation defaults to root. */
  readonly meta?: SessionDraft;
  /**
   * True to copy config, frames and checkpoint. They belong to the leaf, so this defaults to true
   * for a fork at the leaf and to false elsewhere.
   */
  readonly withState?: boolean;
}

interface ForkSession {
  readonly source: SessionRef;
  /** Defaults to the source's leaf. */
  readonly node: string | undefined;
  readonly id: SessionId;
  readonly at: number;
  /** Missing fields are the source's. */
  readonly meta: Partial<SessionMeta>;
  /** Defaults to the source's. */
  readonly agent: string | null | undefined;
  /**
   * True to copy config, frames and checkpoint; defaults to true for a fork at the leaf that they
   * belong to.
   */
  readonly withState: boolean | undefined;
}

/** @throws HoldfastError `ID_MALFORMED`, `NAME_INVALID`, `OPTION_INVALID` */
export function givenFork(
  { clock }: SessionContext,
  source: SessionName,
  id: string,
  options?: SessionForkOptions,
): Call<ForkSession> {
  const { options: known, wait } = optionsAndWait(options, ["node", "meta", "withState"]);
  const { node, meta: draft = {}, withState } = known;
  const { name, model, cwd, relation } = newMeta(id, draft);
  const input = {
    source: sessionNamed(source),
    node: node === undefined ? undefined : checkedId("The id of a node", node),
    id: parseSessionId(id),
    at: clock.now(),
    meta: {
      ...(draft.name !== undefined && { name }),
      ...(draft.model !== undefined && { model }),
      ...(draft.cwd !== undefined && { cwd }),
      ...(draft.relation !== undefined && { relation }),
    },
    agent: draft.agent === undefined ? undefined : newAgent(draft),
    withState: givenFlag("withState", withState),
  };
  return { input, wait };
}

/**
 * Makes a session that begins with the history of another one up to a node. Nodes are shared, not
 * copied, and stay readable even after the source is deleted. A repeated call returns the same
 * fork.
 *
 * @throws HoldfastError `SESSION_EXISTS` when the id is taken by something else, `NODE_NOT_FOUND`,
 *   `SESSION_NOT_FOUND`, `SESSION_DELETED`.
 */
export const forkSession = storeOperation("forkSession", {
  key: (input) => input.id,
  *one(context: SessionContext, input: ForkSession): Tx<CreatedSession> {
    // Comes before the lookup of the source, which may be gone since the fork was made.
    const existing = yield* existingFork(input);
    if (existing !== undefined) return existing;
    const source = yield* lockedHead(input.source);
    const node = yield* forkPoint(source, input.node);
    const meta = { ...(yield* metaOf(source.key)), ...input.meta };
    const created = yield* insertSession({
      id: input.id,
      at: input.at,
      meta,
      agent: input.agent === undefined ? source.agent : input.agent,
    });
    if (created === undefined) {
      const other = yield* existingFork(input);
      if (other !== undefined) return other;
      throw createdAndDeleted(input.id);
    }
    const top = yield* topOfFork(source, node.key);
    const messages = node.messages - top.messages + (isUserMessage(top) ? 1 : 0);
    const owner = {
      key: created.key,
      fork_node: node.key,
      fork_top: top.key,
    };
    yield* run(sql`
      UPDATE holdfast_session SET forked_from = ${source.key}, fork_node = ${node.key}, fork_top = ${top.key},
        leaf = ${node.key}, node_count = ${node.depth - top.depth + 1}, user_message_count = ${messages},
        first_user_message = ${yield* firstUserMessage(context, owner)}
      WHERE key = ${created.key}`);
    if (input.withState ?? node.key === source.leaf) yield* copyState(source, created.key);
    yield* shareAttachments(source, created);
    return { id: input.id, generation: created.generation, existed: false };
  },
});

/**
 * The first node of a fork's history: a root, or the node after the last one on the path that the
 * source has removed. Marks are examined from the newest on; between two that are not on the path,
 * the others are skipped.
 */
function* topOfFork(source: SessionHeadRow, node: number): Tx<Ancestor> {
  const least = source.fork_top ?? 0;
  for (let until = node; ;) {
    const marked = yield* row<{ readonly node: number }>(sql`
      SELECT node FROM holdfast_session_tombstone
      WHERE session = ${source.key} AND node <= ${until} AND node >= ${least} ORDER BY node DESC LIMIT 1`);
    const mark = marked?.node;
    const above = yield* ancestor(node, mark ?? least);
    if (above.key === mark) return yield* ancestor(node, mark + 1);
    if (mark === undefined || above.parent === null || above.parent === mark) return above;
    until = Math.min(above.parent, mark - 1);
  }
}

function* ancestor(node: number, least: number): Tx<Ancestor> {
  const found = yield* topmostFrom(node, least);
  if (found === undefined) throw new Error("A node vanished while locked.");
  return found;
}

function* forkPoint(source: SessionHeadRow, node: string | undefined): Tx<NamedPoint> {
  const found = node === undefined ? leafOf(source) : yield* shownNode(source, node);
  if (found === undefined) throw nodeNotFound(source.id, node ?? "(no leaf)");
  return found;
}

/**
 * The existing fork. Without a given node any fork of the source matches, since its leaf may have
 * moved. Without a given generation the source's last one is meant, which may be deleted.
 *
 * @throws HoldfastError `SESSION_EXISTS`
 */
function* existingFork({ source, id, node }: ForkSession): Tx<CreatedSession | undefined> {
  const found = yield* row<{
    readonly generation: number;
    readonly source_id: SessionId | null;
    readonly source_generation: number | null;
    readonly last: number | null;
    readonly node: string | null;
  }>(sql`
    SELECT s.generation, f.id AS source_id, f.generation AS source_generation,
      (SELECT MAX(l.generation) FROM holdfast_session l WHERE l.id = ${source.id}) AS last,
      (SELECT n.id FROM holdfast_session_node n WHERE n.key = s.fork_node) AS node
    FROM holdfast_session s LEFT JOIN holdfast_session f ON f.key = s.forked_from
    WHERE s.id = ${id} AND s.deleted_at IS NULL`);
  if (found === undefined) return undefined;
  const isFork =
    found.source_id === source.id &&
    found.source_generation === (source.generation ?? found.last) &&
    (node ?? found.node) === found.node;
  if (!isFork) throw sessionExists(id);
  return { id, generation: found.generation, existed: true };
}

function* metaOf(session: number): Tx<SessionMeta> {
  const found = yield* row<Pick<SessionMeta, "name" | "model" | "cwd">>(sql`
    SELECT name, model, cwd FROM holdfast_session WHERE key = ${session}`);
  return {
    name: found?.name ?? "",
    model: found?.model ?? null,
    cwd: found?.cwd ?? null,
    relation: { kind: "root" },
  };
}

/**
 * Copies rows that refer to the same blobs. The blobs are locked, so that they are not collected in
 * the same moment.
 */
function* copyState(source: SessionHeadRow, to: number): Tx<void> {
  const blobs = yield* rows<{ readonly blob: string }>(sql`
    SELECT blob FROM holdfast_session_component WHERE session = ${source.key}
    UNION
    SELECT blob FROM holdfast_session_frame WHERE session = ${source.key} AND blob IS NOT NULL`);
  yield* holdBlobs(blobs.map(({ blob }) => blob));
  yield* run(sql`
    INSERT INTO holdfast_session_component (session, name, version, revision, hash, blob)
    SELECT ${to}, name, version, 0, hash, blob FROM holdfast_session_component WHERE session = ${source.key}`);
  yield* run(sql`
    INSERT INTO holdfast_session_frame (session, id, ordinal, hash, payload, blob)
    SELECT ${to}, id, ordinal, hash, payload, blob FROM holdfast_session_frame WHERE session = ${source.key}`);
  yield* run(sql`
    UPDATE holdfast_session SET config = ${source.config}, current_frame = ${source.current_frame}
    WHERE key = ${to}`);
}
