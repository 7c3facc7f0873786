import type { SessionNode } from "../../../model/session/session.ts";
import { checkedText, givenFlag, givenInvalid } from "../../../model/shape.ts";
import { integersOf, keysOf } from "../../../sql/dialect.ts";
import { row, rows, type Tx } from "../../../sql/operation.ts";
import { sql, type Statement } from "../../../sql/statement.ts";
import { cursorInvalid } from "../../cursor.ts";
import {
  list,
  pageOf,
  slicedByBytes,
  type List,
  type PageOptions,
  type Place,
  type Slice,
  type SliceBounds,
} from "../../list.ts";
import { sessionNamed, type SessionName } from "../../session-name.ts";
import type { SessionRef } from "../../session-row.ts";
import type { SessionContext } from "../context.ts";
import { livingHead, type SessionHeadRow } from "../head-row.ts";
import { isShown, nodeColumns, type GraphOwner, type NodeRow } from "../node-row.ts";
import { graphRows, nodeView, sizedColumns, withoutPayload, type SizedNode } from "./graph.ts";

export interface GraphOptions extends PageOptions {
  /** `oldest`, the default, is the order of insertion. */
  readonly order?: "oldest" | "newest";
  /** Only nodes of this kind. */
  readonly kind?: string;
  /** False leaves the payloads unread: they are undefined. */
  readonly payloads?: boolean;
}

interface GraphFilter {
  readonly session: SessionRef;
  readonly order: "oldest" | "newest";
  readonly kind: string | undefined;
  readonly payloads: boolean;
}

/** All nodes of all branches. Those that a fork shares are older than its own. */
export const graphList: List<
  SessionContext,
  [session: SessionName, options?: GraphOptions],
  SessionNode
> = list("readGraph", {
  table: "holdfast_session_node",
  given(_: SessionContext, session: SessionName, options?: GraphOptions) {
    const { filter, page } = pageOf(options, ["order", "kind", "payloads"]);
    const { order = "oldest", kind, payloads } = filter;
    if (order !== "oldest" && order !== "newest")
      throw givenInvalid("order", '"oldest" or "newest"', order);
    return {
      filter: {
        session: sessionNamed(session),
        order,
        kind: kind === undefined ? undefined : checkedText("The kind of a node", kind),
        payloads: givenFlag("payloads", payloads) ?? true,
      },
      page,
    };
  },
  slice: graphSlice,
  keyOf: ({ id }: NodeRow) => id,
  itemOf: (context, found, { payloads }: GraphFilter) =>
    payloads ? nodeView(context, found) : { ...withoutPayload(found), payload: undefined },
});

function* graphSlice(
  _: SessionContext,
  filter: GraphFilter,
  { after, limit }: SliceBounds,
): Tx<Slice<NodeRow>> {
  const head = yield* livingHead(filter.session);
  const start = after === undefined ? undefined : graphPlace(head, after);
  const { rows: nodes, next } = yield* slicedByBytes<NodeRow>(
    { after: undefined, limit },
    ({ key }) => [key],
    function* (from, count) {
      const found = yield* nodesFrom<SizedNode>(
        head,
        filter,
        sizesOf(filter),
        placeOf(from, start),
        count,
      );
      return found.map(({ bytes }) => bytes);
    },
    function* (from, count) {
      return yield* nodesFrom<NodeRow>(
        head,
        filter,
        columnsOf(filter),
        placeOf(from, start),
        count,
      );
    },
  );
  return { rows: nodes, next: next === undefined ? undefined : [head.generation, next[0] ?? 0] };
}

function placeOf(from: Place | undefined, start: number | undefined): number | undefined {
  return from === undefined ? start : Number(from[0]);
}

/**
 * Decodes a place. A place of an earlier generation of the id means nothing in this one.
 * @throws HoldfastError `CURSOR_INVALID`
 */
function graphPlace(head: SessionHeadRow, after: Place): number {
  const [generation, key] = after;
  if (generation !== head.generation) throw cursorInvalid("filter");
  if (typeof key !== "number" || !Number.isSafeInteger(key)) throw cursorInvalid("malformed");
  return key;
}

const shortColumns: Statement = sql`
  n.key, n.id, n.parent, (SELECT u.id FROM holdfast_session_node u WHERE u.key = n.parent) AS parent_id,
  n.depth, n.turn, n.at, n.kind, n.role, n.frame, n.caused_by, NULL AS payload, NULL AS checksum`;

function columnsOf({ payloads }: GraphFilter): Statement {
  return payloads ? nodeColumns : shortColumns;
}

function sizesOf({ payloads }: GraphFilter): Statement {
  return payloads ? sizedColumns : sql`n.key, COALESCE(octet_length(n.caused_by), 0) AS bytes`;
}

/** Up to `count` nodes after a place, in the order of the list. */
function* nodesFrom<R extends { readonly key: number }>(
  owner: GraphOwner,
  { order, kind }: GraphFilter,
  columns: Statement,
  place: number | undefined,
  count: number,
): Tx<readonly R[]> {
  const ofKind = kind === undefined ? sql`1 = 1` : sql`n.kind = ${kind}`;
  if (order === "oldest")
    return yield* graphRows<R>(
      owner,
      columns,
      { after: place ?? 0, until: Number.MAX_SAFE_INTEGER, count },
      ofKind,
    );
  const own = yield* rows<R>(sql`
    SELECT ${columns} FROM holdfast_session_node n
    WHERE ${keysOf(owner.key, 0, (place ?? Number.MAX_SAFE_INTEGER) - 1)} AND ${isShown(owner)} AND ${ofKind}
    ORDER BY n.session DESC, n.key DESC LIMIT ${count}`);
  if (own.length >= count) return own;
  return [...own, ...(yield* sharedBack<R>(owner, columns, ofKind, place, count - own.length))];
}

/** The number of nodes by which a shared path is climbed at once. */
const stepsPerClimb = 1_000;

interface Climbed {
  readonly key: number;
  readonly parent: number | null;
}

/** The same of the nodes that a fork shares: its path upwards, from the newest on. */
function* sharedBack<R extends { readonly key: number }>(
  owner: GraphOwner,
  columns: Statement,
  ofKind: Statement,
  place: number | undefined,
  count: number,
): Tx<readonly R[]> {
  const { fork_node: end, fork_top: top } = owner;
  const found: R[] = [];
  let from = end === null ? null : yield* sharedBefore(end, place);
  while (from !== null && from >= (top ?? 0) && found.length < count) {
    const climbed: readonly Climbed[] = yield* rows<Climbed>(sql`
      SELECT p.key, p.parent FROM (
        WITH RECURSIVE path (key, parent, steps) AS (
          SELECT n.key, n.parent, 1 FROM holdfast_session_node n WHERE n.key = ${from}
          UNION ALL
          SELECT n.key, n.parent, p.steps + 1 FROM path p JOIN holdfast_session_node n ON n.key = p.parent AND n.key < p.key
          WHERE p.steps < ${stepsPerClimb})
        SELECT key, parent FROM path) AS p ORDER BY p.key DESC`);
    const keys = climbed.map(({ key }) => key);
    found.push(
      ...(yield* rows<R>(sql`
        SELECT ${columns} FROM holdfast_session_node n
        WHERE n.key IN ${integersOf(keys)} AND ${isShown(owner)} AND ${ofKind}
        ORDER BY n.key DESC LIMIT ${count - found.length}`)),
    );
    from = climbed.at(-1)?.parent ?? null;
  }
  return found;
}

/** The newest shared node before a place, which is on the path or after all of it. */
function* sharedBefore(end: number, place: number | undefined): Tx<number | null> {
  if (place === undefined || place > end) return end;
  const found = yield* row<{ readonly parent: number | null }>(sql`
    SELECT parent FROM holdfast_session_node WHERE key = ${place}`);
  return found?.parent ?? null;
}
