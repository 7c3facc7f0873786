import type { Encoded } from "../../model/values/encoded.ts";
import type { NodePoint } from "../../model/session/ancestry.ts";
import { integersOf, textsOf } from "../../sql/dialect.ts";
import { rows } from "../../sql/operation.ts";
import type { Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import type { Statement } from "../../sql/statement.ts";
import { onTheWayTo } from "./graph/ancestors.ts";

/** The owner of nodes: a session's own nodes, and those on the path to its fork node. */
export interface GraphOwner {
  readonly key: number;
  readonly fork_node: number | null;
  /** The first node of that path. */
  readonly fork_top: number | null;
}

/** A stored node, with the id of its parent. */
export interface NodeRow {
  readonly key: number;
  readonly id: string;
  readonly parent: number | null;
  readonly parent_id: string | null;
  readonly depth: number;
  readonly turn: string;
  readonly at: number;
  readonly kind: string;
  readonly role: string | null;
  readonly frame: string | null;
  readonly caused_by: string | null;
  readonly payload: Encoded | null;
  /** The checksum of the payload. */
  readonly checksum: string | null;
}

/** The columns of a node `n`. */
export const nodeColumns: Statement = sql`
  n.key, n.id, n.parent, (SELECT u.id FROM holdfast_session_node u WHERE u.key = n.parent) AS parent_id,
  n.depth, n.turn, n.at, n.kind, n.role, n.frame, n.caused_by, n.payload, n.checksum`;

/** A condition for a node `n` that the session has neither removed nor left out of its fork. */
export function isShown({ key, fork_top: top }: Pick<GraphOwner, "key" | "fork_top">): Statement {
  // Its own nodes came after the fork, so their keys are greater.
  return sql`n.key >= ${top ?? 0} AND NOT EXISTS (
    SELECT 1 FROM holdfast_session_tombstone t WHERE t.session = ${key} AND t.node = n.key)`;
}

/** An existing node and its id. */
export interface NamedPoint extends NodePoint {
  readonly id: string;
}

export interface ShownNode extends NamedPoint {
  readonly kind: string;
  readonly role: string | null;
}

const shownColumns = sql`n.key, n.id, n.depth, n.skip, n.far, n.messages, n.kind, n.role`;

/** A node that the session shows, by its id. */
export function* shownNode(owner: GraphOwner, id: string): Tx<ShownNode | undefined> {
  return (yield* shownNodes(owner, [id]))[0];
}

/** The given nodes that the session shows. */
export function* shownNodes(owner: GraphOwner, ids: readonly string[]): Tx<readonly ShownNode[]> {
  const own = yield* rows<ShownNode>(sql`
    SELECT ${shownColumns} FROM holdfast_session_node n
    WHERE n.session = ${owner.key} AND n.id IN ${textsOf(ids)} AND ${isShown(owner)}`);
  if (own.length === ids.length) return own;
  const known = new Set(own.map(({ id }) => id));
  const others = ids.filter((id) => !known.has(id));
  return [...own, ...(yield* inheritedNodes(owner, others))];
}

/**
 * The given nodes that the session shares with the one it was forked from, on the path to its fork
 * node. They are first looked up by their ids along the line of forks, so an unknown id costs no
 * climb.
 */
export function* inheritedNodes(
  owner: GraphOwner,
  ids: readonly string[],
): Tx<readonly ShownNode[]> {
  const { key, fork_node: forkNode } = owner;
  if (forkNode === null || ids.length === 0) return [];
  const candidates = yield* rows<ShownNode>(sql`
    SELECT ${shownColumns} FROM holdfast_session_node n
    WHERE n.session IN ${integersOf(yield* sourcesOf(key))} AND n.id IN ${textsOf(ids)}
      AND n.key <= ${forkNode} AND ${isShown(owner)}`);
  const shared = yield* onTheWayTo(
    forkNode,
    candidates.map((node) => node.key),
  );
  return candidates.filter((node) => shared.has(node.key));
}

/**
 * The sessions that it was forked from, nearest first. Each row refers to an older one, so the walk
 * ends.
 */
function* sourcesOf(session: number): Tx<readonly number[]> {
  const found = yield* rows<{ readonly key: number }>(sql`
    SELECT l.key FROM (
      WITH RECURSIVE line (key, forked_from) AS (
        SELECT s.key, s.forked_from FROM holdfast_session s WHERE s.key = ${session}
        UNION ALL
        SELECT s.key, s.forked_from FROM line l JOIN holdfast_session s ON s.key = l.forked_from AND s.key < l.key
      )
      SELECT key FROM line) AS l
    WHERE l.key <> ${session}`);
  return found.map(({ key }) => key);
}
