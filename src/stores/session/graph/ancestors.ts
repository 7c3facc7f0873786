import { farSpan, skipSpan } from "../../../model/session/ancestry.ts";
import { integersOf } from "../../../sql/dialect.ts";
import { row, rows } from "../../../sql/operation.ts";
import type { Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import type { Statement } from "../../../sql/statement.ts";

/**
 * Finds ancestors by climbing. Each step takes the column `far`, `skip` or `parent` that leads
 * furthest up without overshooting. Keys decrease on the way up, as depths do. The query checks
 * depths too, so that it ends in damaged data. Recursive parts are nested in a SELECT, since a read
 * must begin with one.
 */

export interface Ancestor {
  readonly key: number;
  readonly parent: number | null;
  readonly depth: number;
  readonly messages: number;
  readonly kind: string;
  readonly role: string | null;
}

/** The topmost ancestor of a node, itself included, whose key is at least `least`. */
export function* topmostFrom(node: number, least: number): Tx<Ancestor | undefined> {
  // Ancestors may be missing above a removed node; the climb does not jump to those.
  const there = (column: Statement): Statement => sql`
    (SELECT u.key FROM holdfast_session_node u WHERE u.key = ${column} AND u.key >= ${least})`;
  return yield* ancestorWith(sql`
    WITH RECURSIVE climb (key, parent, skip, far, depth) AS (
      SELECT a.key, a.parent, a.skip, a.far, a.depth FROM holdfast_session_node a
      WHERE a.key = ${node} AND a.key >= ${least}
      UNION ALL
      SELECT a.key, a.parent, a.skip, a.far, a.depth FROM climb c JOIN holdfast_session_node a
        ON a.key = COALESCE(${there(sql`c.far`)}, ${there(sql`c.skip`)}, ${there(sql`c.parent`)})
        AND a.depth < c.depth
    )
    SELECT key FROM climb`);
}

/** The ancestor at a depth; the node itself when it is not that deep. */
export function* ancestorAt(node: number, depth: number): Tx<Ancestor | undefined> {
  return yield* ancestorWith(sql`
    WITH RECURSIVE climb (key, parent, skip, far, depth) AS (
      SELECT a.key, a.parent, a.skip, a.far, a.depth FROM holdfast_session_node a WHERE a.key = ${node}
      UNION ALL
      SELECT a.key, a.parent, a.skip, a.far, a.depth FROM climb c JOIN holdfast_session_node a
        ON a.key = CASE WHEN (c.depth - 1) / ${farSpan} * ${farSpan} >= ${depth} THEN c.far
          WHEN (c.depth - 1) / ${skipSpan} * ${skipSpan} >= ${depth} THEN c.skip ELSE c.parent END
        AND a.depth < c.depth
      WHERE c.depth > ${depth}
    )
    SELECT key FROM climb`);
}

/**
 * The topmost message of a user, from a key on, with a given number of user messages on the way to
 * it.
 */
export function* messageOnTheWay(
  node: number,
  least: number,
  messages: number,
): Tx<Ancestor | undefined> {
  const has = (column: Statement): Statement => sql`
    EXISTS (SELECT 1 FROM holdfast_session_node u
      WHERE u.key = ${column} AND u.key >= ${least} AND u.messages >= ${messages})`;
  return yield* ancestorWith(sql`
    WITH RECURSIVE climb (key, parent, skip, far, depth) AS (
      SELECT a.key, a.parent, a.skip, a.far, a.depth FROM holdfast_session_node a
      WHERE a.key = ${node} AND a.key >= ${least} AND a.messages >= ${messages}
      UNION ALL
      SELECT a.key, a.parent, a.skip, a.far, a.depth FROM climb c JOIN holdfast_session_node a
        ON a.key = CASE WHEN ${has(sql`c.far`)} THEN c.far WHEN ${has(sql`c.skip`)} THEN c.skip
          WHEN ${has(sql`c.parent`)} THEN c.parent END
        AND a.depth < c.depth
    )
    SELECT key FROM climb`);
}

function* ancestorWith(climb: Statement): Tx<Ancestor | undefined> {
  return yield* row<Ancestor>(sql`
    SELECT n.key, n.parent, n.depth, n.messages, n.kind, n.role FROM holdfast_session_node n
    WHERE n.key = (SELECT MIN(c.key) FROM (${climb}) AS c)`);
}

/** The given keys that belong to a node or to one of its ancestors. */
export function* onTheWayTo(node: number, keys: readonly number[]): Tx<ReadonlySet<number>> {
  if (keys.length === 0) return new Set();
  const found = yield* rows<{ readonly key: number }>(sql`
    SELECT c.key FROM (
      WITH RECURSIVE climb (wanted, key, parent, skip, far, depth) AS (
        SELECT w.key, a.key, a.parent, a.skip, a.far, a.depth
        FROM holdfast_session_node w JOIN holdfast_session_node a ON a.key = ${node} AND a.key >= w.key
        WHERE w.key IN ${integersOf(keys)}
        UNION ALL
        SELECT c.wanted, a.key, a.parent, a.skip, a.far, a.depth FROM climb c JOIN holdfast_session_node a
          ON a.key = CASE WHEN c.far >= c.wanted THEN c.far WHEN c.skip >= c.wanted THEN c.skip
            WHEN c.parent >= c.wanted THEN c.parent END
          AND a.depth < c.depth
      )
      SELECT wanted, key FROM climb) AS c
    WHERE c.key = c.wanted`);
  return new Set(found.map(({ key }) => key));
}

/**
 * The keys of a node and its ancestors from a key on, each after its parent's, for a stretch of a
 * path.
 */
export function stretch(node: number, least: number): Statement {
  return sql`(
    WITH RECURSIVE stretch (key, parent, depth) AS (
      SELECT a.key, a.parent, a.depth FROM holdfast_session_node a WHERE a.key = ${node}
      UNION ALL
      SELECT a.key, a.parent, a.depth FROM stretch d JOIN holdfast_session_node a
        ON a.key = d.parent AND a.depth = d.depth - 1
      WHERE a.key >= ${least}
    )
    SELECT key FROM stretch)`;
}
