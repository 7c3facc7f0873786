import { corruptRow } from "../../../model/corrupt-row.ts";
import { keysOf } from "../../../sql/dialect.ts";
import { row, rows, plainOperation } from "../../../sql/operation.ts";
import type { Operation, Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { cursorInvalid } from "../../cursor.ts";
import { leafOf, livingHead } from "../head-row.ts";
import type { SessionHeadRow } from "../head-row.ts";
import { ancestorAt, stretch, topmostFrom } from "./ancestors.ts";
import { isShown, nodeColumns, shownNode } from "../node-row.ts";
import type { GraphOwner, NodeRow } from "../node-row.ts";
import type { SessionRef } from "../session-row.ts";

interface LoadNode {
  readonly session: SessionRef;
  readonly id: string;
}

/** One node that the session shows; undefined for one it does not. */
export const loadNode: Operation<LoadNode, NodeRow | undefined> =
  plainOperation("loadNode", {
    key: (input: LoadNode) => input.session.id,
    *one({ session, id }) {
      const found = yield* shownNode(yield* livingHead(session), id);
      if (found === undefined) return undefined;
      return yield* row<NodeRow>(sql`
      SELECT ${nodeColumns} FROM holdfast_session_node n WHERE n.key = ${found.key}`);
    },
  });

export interface GraphPage {
  readonly nodes: readonly NodeRow[];
  readonly hasMore: boolean;
}

export interface ReadGraph {
  readonly session: SessionRef;
  /** The key of the last node of the page before. */
  readonly after: number;
  /** The generation that page was of. */
  readonly generation?: number;
  readonly limit: number;
}

/** All nodes of all branches in the order of insertion: first those it was forked with. @throws HoldfastError `CURSOR_INVALID` */
export const readGraph: Operation<
  ReadGraph,
  GraphPage & { readonly generation: number }
> = plainOperation("readGraph", {
  key: (input: ReadGraph) => input.session.id,
  *one({ session, after, generation: given, limit }) {
    const head = yield* livingHead(session);
    const { generation } = head;
    if ((given ?? generation) !== generation) throw cursorInvalid("filter");
    return { generation, ...(yield* graphPage(head, after, limit)) };
  },
});

/** The same below a bound, for reading a graph as it was while it grows. */
export function* graphPage(
  owner: GraphOwner,
  after: number,
  limit: number,
  until: number = Number.MAX_SAFE_INTEGER,
): Tx<GraphPage> {
  // Shared nodes were there before the fork, so all of them come first.
  const nodes = [...(yield* sharedPage(owner, after, limit))];
  if (nodes.length <= limit)
    nodes.push(
      ...(yield* rows<NodeRow>(sql`
        SELECT ${nodeColumns} FROM holdfast_session_node n
        WHERE ${keysOf(owner.key, after, until)} AND ${isShown(owner)}
        ORDER BY n.session, n.key LIMIT ${limit + 1 - nodes.length}`)),
    );
  return { nodes: nodes.slice(0, limit), hasMore: nodes.length > limit };
}

/**
 * One more than a page of the nodes that a fork shares, or all that are left:
 * in stretches of the path, each from the top down, until enough are shown.
 */
function* sharedPage(
  owner: GraphOwner,
  after: number,
  limit: number,
): Tx<readonly NodeRow[]> {
  const { fork_node: end, fork_top: top } = owner;
  const found: NodeRow[] = [];
  if (end === null) return found;
  let least = Math.max(after + 1, top ?? 0);
  while (found.length <= limit && least <= end) {
    const first = yield* topmostFrom(end, least);
    if (first === undefined) break;
    const last = (yield* ancestorAt(end, first.depth + limit))?.key ?? end;
    found.push(
      ...(yield* rows<NodeRow>(sql`
        SELECT ${nodeColumns} FROM ${stretch(last, least)} AS a CROSS JOIN holdfast_session_node n
        WHERE n.key = a.key AND ${isShown(owner)} ORDER BY a.key`)),
    );
    least = last + 1;
  }
  return found.slice(0, limit + 1);
}

export interface ReadPath {
  readonly session: SessionRef;
  /** Unless given, where the conversation goes on. */
  readonly leaf: string | undefined;
  readonly limit: number;
}

export interface PathPage {
  /** Root first. */
  readonly nodes: readonly NodeRow[];
  /** True when older nodes were left out. */
  readonly hasMore: boolean;
  readonly leaf: string | null;
}

/**
 * The way from a root to a leaf. It begins after a node that the session has
 * removed; of a leaf that it does not show nothing is returned.
 *
 * @throws HoldfastError `CORRUPT_ROW` when it leads nowhere.
 */
export const readPath: Operation<ReadPath, PathPage> = plainOperation(
  "readPath",
  {
    key: (input: ReadPath) => input.session.id,
    *one({ session, leaf, limit }) {
      return yield* pathOf(yield* livingHead(session), leaf, limit);
    },
  },
);

export function* pathOf(
  head: SessionHeadRow,
  leaf: string | undefined,
  limit: number,
): Tx<PathPage> {
  const chosen =
    leaf === undefined ? leafOf(head) : yield* shownNode(head, leaf);
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

/** A path begins at a root, after a node that the session has removed, or where a fork does. @throws HoldfastError `CORRUPT_ROW` */
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
      `(node "${first.id}") has a parent or a depth that lead nowhere`,
    );
}
