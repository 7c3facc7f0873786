import { corruptRow } from "../../../model/corrupt-row.ts";
import type { SessionNode } from "../../../model/session/session.ts";
import { checkedCount } from "../../../model/shape.ts";
import type { WaitOptions } from "../../../sql/database.ts";
import { keysOf } from "../../../sql/dialect.ts";
import { row, rows, storeOperation, type Tx } from "../../../sql/operation.ts";
import { sql, type Statement } from "../../../sql/statement.ts";
import { readChecked } from "../../damage.ts";
import { slicedByBytes, type Place } from "../../list.ts";
import { onlyWait, optionsAndWait, type Call } from "../../method.ts";
import type { SessionContext } from "../context.ts";
import { leafOf, livingHead, type SessionHeadRow } from "../head-row.ts";
import { isShown, nodeColumns, shownNode, type GraphOwner, type NodeRow } from "../node-row.ts";
import { checkedId, sessionNamed, type SessionName } from "../../session-name.ts";
import type { SessionRef } from "../../session-row.ts";
import { ancestorAt, stretch, topmostFrom } from "./ancestors.ts";

/**
 * The conversation as a graph of nodes, each with its depth and the key of its parent. A path is
 * one recursive query in which depths must fall by one, so it also ends in damaged data. A session
 * shows its own nodes and the path from `fork_top` down to `fork_node`, whichever session owns that
 * path. It hides nodes for which it has a tombstone. All own nodes have greater keys, so one
 * comparison excludes the nodes that a fork leaves out. `ancestors.ts` finds old ancestors.
 */

interface LoadNode {
  readonly session: SessionRef;
  readonly id: string;
}

export function givenNode(
  _: SessionContext,
  session: SessionName,
  id: string,
  wait?: WaitOptions,
): Call<LoadNode> {
  const input = {
    session: sessionNamed(session),
    id: checkedId("The id of a node", id),
  };
  return { input, wait: onlyWait(wait) };
}

/** Returns a node that the session shows; undefined otherwise. */
export const loadNode = storeOperation("loadNode", {
  key: (input) => input.session.id,
  *one(_: SessionContext, { session, id }: LoadNode): Tx<NodeRow | undefined> {
    const found = yield* shownNode(yield* livingHead(session), id);
    if (found === undefined) return undefined;
    return yield* row<NodeRow>(sql`
      SELECT ${nodeColumns} FROM holdfast_session_node n WHERE n.key = ${found.key}`);
  },
});

export function shownLoadedNode(
  context: SessionContext,
  found: NodeRow | undefined,
): SessionNode | undefined {
  return found && nodeView(context, found);
}

/** @throws HoldfastError `CORRUPT_ROW` */
export function nodeView(context: SessionContext, found: NodeRow): SessionNode {
  const { payload: text, checksum } = found;
  if (text === null || checksum === null)
    throw corruptRow("holdfast_session_node", found.key, `(node "${found.id}") has no payload`);
  return {
    ...withoutPayload(found),
    payload: readChecked(context, "holdfast_session_node", found.key, { text, checksum }),
  };
}

export function withoutPayload(found: NodeRow): Omit<SessionNode, "payload"> {
  return {
    id: found.id,
    parent: found.parent_id,
    turn: found.turn,
    at: found.at,
    kind: found.kind,
    role: found.role,
    frame: found.frame,
    causedBy: found.caused_by,
  };
}

export interface GraphPage {
  readonly nodes: readonly NodeRow[];
  /** The key of the last node; undefined when no nodes follow. */
  readonly next: number | undefined;
}

/** Reads nodes after a key up to a bound, so that a growing graph can be read as of one moment. */
export function* graphPage(
  owner: GraphOwner,
  after: number,
  limit: number,
  until: number = Number.MAX_SAFE_INTEGER,
): Tx<GraphPage> {
  const place = (given: Place | undefined): number => Number(given?.[0] ?? after);
  const { rows: nodes, next } = yield* slicedByBytes<NodeRow>(
    { after: undefined, limit },
    ({ key }) => [key],
    function* (from, count) {
      const range = { after: place(from), until, count };
      const found = yield* graphRows<SizedNode>(owner, sizedColumns, range);
      return found.map(({ bytes }) => bytes);
    },
    function* (from, count) {
      const range = { after: place(from), until, count };
      return yield* graphRows<NodeRow>(owner, nodeColumns, range);
    },
  );
  return { nodes, next: next === undefined ? undefined : Number(next[0]) };
}

export interface SizedNode {
  readonly key: number;
  readonly bytes: number;
}

export const sizedColumns: Statement = sql`
  n.key, COALESCE(octet_length(n.payload), 0) + COALESCE(octet_length(n.caused_by), 0) AS bytes`;

interface GraphRange {
  readonly after: number;
  readonly until: number;
  readonly count: number;
}

export function* graphRows<R extends object>(
  owner: GraphOwner,
  columns: Statement,
  { after, until, count }: GraphRange,
  and: Statement = sql`1 = 1`,
): Tx<readonly R[]> {
  // Shared nodes are older than the fork, so all of them come first.
  const shared = yield* sharedRows<R>(owner, columns, { after, count }, and);
  if (shared.length >= count) return shared;
  const own = yield* rows<R>(sql`
    SELECT ${columns} FROM holdfast_session_node n
    WHERE ${keysOf(owner.key, after, until)} AND ${isShown(owner)} AND ${and}
    ORDER BY n.session, n.key LIMIT ${count - shared.length}`);
  return [...shared, ...own];
}

/**
 * Reads up to `count` of the nodes that a fork shares. Goes through stretches of the path, each
 * from the top down, until enough are shown.
 */
function* sharedRows<R extends object>(
  owner: GraphOwner,
  columns: Statement,
  { after, count }: Pick<GraphRange, "after" | "count">,
  and: Statement,
): Tx<readonly R[]> {
  const { fork_node: end, fork_top: top } = owner;
  const found: R[] = [];
  if (end === null) return found;
  let least = Math.max(after + 1, top ?? 0);
  while (found.length < count && least <= end) {
    const first = yield* topmostFrom(end, least);
    if (first === undefined) break;
    const last = (yield* ancestorAt(end, first.depth + count - 1))?.key ?? end;
    found.push(
      ...(yield* rows<R>(sql`
        SELECT ${columns} FROM ${stretch(last, least)} AS a CROSS JOIN holdfast_session_node n
        WHERE n.key = a.key AND ${isShown(owner)} AND ${and} ORDER BY a.key`)),
    );
    least = last + 1;
  }
  return found.slice(0, count);
}

export interface SessionPathOptions extends WaitOptions {
  /** The end of the path; defaults to the leaf of the conversation. */
  readonly leaf?: string;
  /** The largest number of nodes, newest first, 1 to 10,000; defaults to 10,000. */
  readonly limit?: number;
}

export interface SessionPath {
  /** Root first. */
  readonly nodes: readonly SessionNode[];
  /** The node at the end of the path, even if it is not shown. */
  readonly leaf: string | null;
  /** True when older nodes were left out. To read on, set `leaf` to the first node's parent. */
  readonly hasMore: boolean;
}

export interface ReadPath {
  readonly session: SessionRef;
  /** Defaults to the leaf of the conversation. */
  readonly leaf: string | undefined;
  readonly limit: number;
}

const pathNodesMax = 10_000;

export function givenPath(
  _: SessionContext,
  session: SessionName,
  options?: SessionPathOptions,
): Call<ReadPath> {
  const { options: known, wait } = optionsAndWait(options, ["leaf", "limit"]);
  const { leaf, limit = pathNodesMax } = known;
  const input = {
    session: sessionNamed(session),
    leaf: leaf === undefined ? undefined : checkedId("The leaf", leaf),
    limit: checkedCount("limit", limit, { min: 1, max: pathNodesMax }),
  };
  return { input, wait };
}

export interface PathRows {
  /** Root first. */
  readonly nodes: readonly NodeRow[];
  /** True when older nodes were left out. */
  readonly hasMore: boolean;
  readonly leaf: string | null;
}

/**
 * Reads the path from a root to a leaf. It begins after a node that the session has removed. For a
 * leaf that the session does not show, it is empty.
 *
 * @throws HoldfastError `CORRUPT_ROW` for a path without a root.
 */
export const readPath = storeOperation("readPath", {
  key: (input) => input.session.id,
  *one(_: SessionContext, { session, leaf, limit }: ReadPath): Tx<PathRows> {
    return yield* pathRows(yield* livingHead(session), leaf, limit);
  },
});

export function shownPath(
  context: SessionContext,
  { nodes, leaf, hasMore }: PathRows,
): SessionPath {
  return { nodes: nodes.map((node) => nodeView(context, node)), leaf, hasMore };
}

export function* pathRows(
  head: SessionHeadRow,
  leaf: string | undefined,
  limit: number,
): Tx<PathRows> {
  const chosen = leaf === undefined ? leafOf(head) : yield* shownNode(head, leaf);
  const leafId = leaf ?? chosen?.id ?? null;
  if (chosen === undefined) return { nodes: [], hasMore: false, leaf: leafId };
  const found = yield* rows<NodeRow>(sql`
    SELECT ${nodeColumns} FROM (
      WITH RECURSIVE path (key, parent, depth, steps) AS (
        SELECT n.key, n.parent, n.depth, 0 FROM holdfast_session_node n
        WHERE n.key = ${chosen.key} AND ${isShown(head)}
        UNION ALL
        SELECT n.key, n.parent, n.depth, p.steps + 1 FROM path p JOIN holdfast_session_node n
          ON n.key = p.parent AND n.depth = p.depth - 1
        WHERE p.steps < ${limit} AND ${isShown(head)}
      )
      SELECT key FROM path) AS p
    JOIN holdfast_session_node n ON n.key = p.key ORDER BY n.depth`);
  const hasMore = found.length > limit;
  const nodes = hasMore ? found.slice(1) : found;
  const first = nodes[0];
  if (!hasMore && first !== undefined) yield* assertBeginning(head, first);
  return { nodes, hasMore, leaf: leafId };
}

export type PathBeginning = Pick<NodeRow, "key" | "id" | "parent" | "depth">;

/**
 * Checks the beginning of a path: a root, a node after a removed one, or the beginning of a fork.
 * @throws HoldfastError `CORRUPT_ROW`
 */
export function* assertBeginning(
  { key: session, fork_top: top }: GraphOwner,
  first: PathBeginning,
): Tx<void> {
  if (first.parent === null && first.depth === 0) return;
  if (first.key === top) return;
  const removed =
    first.parent === null
      ? undefined
      : yield* row(sql`
        SELECT node FROM holdfast_session_tombstone
        WHERE session = ${session} AND node = ${first.parent}`);
  if (removed === undefined)
    throw corruptRow(
      "holdfast_session_node",
      first.key,
      `(node "${first.id}") has an invalid parent or depth`,
    );
}
