import type { Encoded } from "../../../model/values/encoded.ts";
import { isFence, type LeaseFence } from "../../../model/lease.ts";
import { isUserMessage } from "../../../model/session/ancestry.ts";
import { revisionConflict } from "../../../model/session/errors.ts";
import { checkedCount, givenInvalid, givenList } from "../../../model/shape.ts";
import type { WaitOptions } from "../../../sql/database.ts";
import { integersOf } from "../../../sql/dialect.ts";
import { row, rows, run, storeOperation, type Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { assertFence } from "../../lease/parts.ts";
import { optionsAndWait, type Call } from "../../method.ts";
import { sweep, sweepOptions, type SweepOptions } from "../../removal.ts";
import type { SessionContext } from "../context.ts";
import { lockedHead, type SessionHeadRow } from "../head-row.ts";
import { isShown, shownNodes, type GraphOwner } from "../node-row.ts";
import { checkedId, sessionNamed, type SessionName } from "../../session-name.ts";
import type { SessionRef } from "../../session-row.ts";
import { messageOnTheWay, onTheWayTo, topmostFrom } from "./ancestors.ts";
import { assertBeginning, type PathBeginning } from "./graph.ts";

export interface TombstoneOptions extends WaitOptions {
  /** Proof that the caller holds the session's lease. */
  readonly fence: LeaseFence;
  /** Hides only on top of this revision. */
  readonly expectedRevision?: number;
}

/** The state of a session after nodes were hidden. */
export interface TombstoneOutcome {
  /** The number of nodes that this call hid. */
  readonly hidden: number;
  readonly revision: number;
  readonly leaf: string | null;
}

interface TombstoneNodes {
  readonly session: SessionRef;
  readonly ids: readonly string[];
  readonly fence: LeaseFence | undefined;
  readonly expectedRevision: number | undefined;
}

const tombstonesMax = 1_000;

export function givenTombstone(
  _: SessionContext,
  session: SessionName,
  ids: readonly string[],
  options: TombstoneOptions,
): Call<TombstoneNodes> {
  const { options: known, wait } = optionsAndWait(options, ["fence", "expectedRevision"]);
  const { fence, expectedRevision } = known;
  if (expectedRevision !== undefined) checkedCount("expectedRevision", expectedRevision);
  const input = {
    session: sessionNamed(session),
    ids: givenList("ids", ids, tombstonesMax).map((id) => checkedId("The id of a node", id)),
    fence: fence === undefined ? undefined : shownFence(fence),
    expectedRevision,
  };
  return { input, wait };
}

/**
 * Copies a fence. The database decides whether it is current.
 * @throws HoldfastError `OPTION_INVALID`
 */
function shownFence(given: LeaseFence): LeaseFence {
  if (isFence(given)) return { ...given };
  throw givenInvalid("fence", "a lease from acquire", given);
}

/**
 * Hides nodes of a session at once, which makes a new revision. A turn that was prepared on top of
 * the previous revision is refused. Unknown ids are ignored. If the leaf is hidden, the
 * conversation continues from its nearest visible ancestor. When there is nothing to hide, as in a
 * repeated call, nothing changes, and neither lease nor revision matters.
 *
 * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`, `LEASE_LOST`, `REVISION_CONFLICT`
 */
export const tombstoneNodes = storeOperation("tombstoneNodes", {
  key: (input) => input.session.id,
  *one(context: SessionContext, input: TombstoneNodes): Tx<TombstoneOutcome> {
    const head = yield* lockedHead(input.session);
    const found = yield* shownNodes(head, [...new Set(input.ids)]);
    if (found.length === 0) return { hidden: 0, revision: head.revision, leaf: head.leaf_id };
    yield* assertFence(context, head, input.fence);
    const { expectedRevision = head.revision } = input;
    if (expectedRevision !== head.revision)
      throw revisionConflict(head.id, expectedRevision, head.revision);
    for (const { key } of found)
      yield* run(sql`
        INSERT INTO holdfast_session_tombstone (session, node) VALUES (${head.key}, ${key})`);
    const owner = { ...head, fork_top: yield* topShown(head, found) };
    const messages = found.filter(isUserMessage).map(({ key }) => key);
    const first = (yield* hidesFirst(context, head, messages))
      ? yield* firstUserMessage(context, owner)
      : head.first_user_message;
    const shown = { key: head.leaf, id: head.leaf_id };
    const leaf = found.some(({ key }) => key === head.leaf)
      ? yield* nearestShown(head, head.leaf ?? 0)
      : shown;
    const revision = head.revision + 1;
    yield* run(sql`
      UPDATE holdfast_session SET revision = ${revision}, leaf = ${leaf.key},
        node_count = node_count - ${found.length}, fork_top = ${owner.fork_top},
        user_message_count = user_message_count - ${messages.length}, first_user_message = ${first}
      WHERE key = ${head.key}`);
    return { hidden: found.length, revision, leaf: leaf.id };
  },
});

/**
 * The nearest ancestor of a hidden node that the session shows. Undefined when the path ends first:
 * at a root, at the beginning of a fork, or after a removed node.
 *
 * @throws HoldfastError `CORRUPT_ROW` for a path without a root.
 */
function* nearestShown(
  owner: GraphOwner,
  hidden: number,
): Tx<{ readonly key: number | null; readonly id: string | null }> {
  const way = yield* row<PathBeginning & { readonly hidden: number }>(sql`
    SELECT w.key, w.id, w.parent, w.depth, w.hidden FROM (
      WITH RECURSIVE way (key, id, parent, depth, hidden) AS (
        SELECT n.key, n.id, n.parent, n.depth, 1 FROM holdfast_session_node n WHERE n.key = ${hidden}
        UNION ALL
        SELECT n.key, n.id, n.parent, n.depth, CASE WHEN ${isShown(owner)} THEN 0 ELSE 1 END
        FROM way w JOIN holdfast_session_node n ON n.key = w.parent AND n.depth = w.depth - 1
        WHERE w.hidden = 1 AND n.key >= ${owner.fork_top ?? 0}
      )
      SELECT key, id, parent, depth, hidden FROM way) AS w
    ORDER BY w.depth LIMIT 1`);
  if (way?.hidden === 0) return { key: way.key, id: way.id };
  if (way !== undefined) yield* assertBeginning(owner, way);
  return { key: null, id: null };
}

/**
 * The first shared node that a fork still shows, or a key past the last one. Earlier nodes are not
 * kept for the fork.
 */
function* topShown(
  { key, fork_node: end, fork_top: top }: GraphOwner,
  hidden: readonly { readonly key: number }[],
): Tx<number | null> {
  if (end === null || top === null) return top;
  if (!hidden.some((node) => node.key === top)) return top;
  let next = top;
  while (next <= end && (yield* isMarked(key, next)))
    next = (yield* topmostFrom(end, next + 1))?.key ?? end + 1;
  return next;
}

function* isMarked(session: number, node: number): Tx<boolean> {
  const mark = yield* row(sql`
    SELECT node FROM holdfast_session_tombstone WHERE session = ${session} AND node = ${node}`);
  return mark !== undefined;
}

/**
 * Tests whether the message that lists show may be among these; only then is another one searched.
 */
function* hidesFirst(
  { isShownAs }: SessionContext,
  { first_user_message: first }: SessionHeadRow,
  messages: readonly number[],
): Tx<boolean> {
  if (messages.length === 0 || first === null) return false;
  const found = yield* rows<{ readonly payload: Encoded }>(sql`
    SELECT payload FROM holdfast_session_node WHERE key IN ${integersOf(messages)}`);
  return found.some(({ payload }) => isShownAs(payload, first));
}

/**
 * The text of the first message that the session shows, as lists show it. Shared messages come
 * first.
 */
export function* firstUserMessage(
  { textOf }: SessionContext,
  owner: GraphOwner,
): Tx<Encoded | null> {
  const shared = yield* firstSharedMessage(owner);
  const found = yield* row<{ readonly payload: Encoded }>(
    shared === undefined
      ? sql`
        SELECT n.payload FROM holdfast_session_node n
        WHERE n.session = ${owner.key} AND n.kind = 'message' AND n.role = 'user' AND ${isShown(owner)}
        ORDER BY n.key LIMIT 1`
      : sql`SELECT payload FROM holdfast_session_node WHERE key = ${shared}`,
  );
  return found === undefined ? null : textOf(found.payload);
}

function* firstSharedMessage(owner: GraphOwner): Tx<number | undefined> {
  const { key, fork_node: end, fork_top: least } = owner;
  if (end === null || least === null) return undefined;
  const top = yield* topmostFrom(end, least);
  if (top === undefined) return undefined;
  let wanted = top.messages + (isUserMessage(top) ? 0 : 1);
  for (;;) {
    const message = yield* messageOnTheWay(end, least, wanted);
    if (message === undefined) return undefined;
    if (!(yield* isMarked(key, message.key))) return message.key;
    wanted = message.messages + 1;
  }
}

interface VacuumReport {
  readonly removed: number;
  /** Nodes that this session no longer shows and a fork still does. */
  readonly shared: number;
}

/** Removes hidden nodes of a session that no fork shows, in slices. */
export async function vacuumSession(
  context: SessionContext,
  session: SessionName,
  options: SweepOptions<VacuumReport> | undefined,
): Promise<VacuumReport> {
  const { rowsPerSlice: rowsMax, ...known } = sweepOptions(options);
  const ref = sessionNamed(session);
  let after = 0;
  return sweep(context, known, async () => {
    const { next, ...report } = await context.database.write(
      vacuumSlice(context),
      { session: ref, after, rowsMax },
      { signal: known.signal },
    );
    after = next ?? after;
    return { report, isDone: next === undefined };
  });
}

interface VacuumSlice {
  readonly session: SessionRef;
  /** The key of the last node that was examined before. */
  readonly after: number;
  readonly rowsMax: number;
}

interface VacuumedSlice extends VacuumReport {
  /** The key to continue from; undefined at the end. */
  readonly next: number | undefined;
}

/**
 * Removes nodes that the session hides and no fork reaches. A node below a removed one stays. Its
 * mark stays too, and explains the missing parent.
 */
export const vacuumSlice = storeOperation("vacuumSessionSlice", {
  key: (input) => input.session.id,
  *one(_: SessionContext, { session, after, rowsMax }: VacuumSlice): Tx<VacuumedSlice> {
    const { key } = yield* lockedHead(session);
    const forks = yield* livingForks(key);
    // Each mark is looked up on the path to each fork.
    const marksMax = Math.max(1, Math.floor(rowsMax / (forks.length + 1)));
    const marked = yield* rows<{
      readonly node: number;
      readonly owner: number | null;
    }>(sql`
      SELECT t.node, (SELECT n.session FROM holdfast_session_node n WHERE n.key = t.node) AS owner
      FROM holdfast_session_tombstone t
      WHERE t.session = ${key} AND t.node > ${after} ORDER BY t.node LIMIT ${marksMax}`);
    const own = marked.filter(({ owner }) => owner === key).map(({ node }) => node);
    const reached = yield* reachedByForks(forks, own);
    const removable = own.filter((node) => !reached.has(node));
    const removed =
      removable.length === 0
        ? 0
        : yield* run(sql`
              DELETE FROM holdfast_session_node WHERE key IN ${integersOf(removable)}`);
    yield* removeIdleMarks(
      key,
      marked.map(({ node }) => node),
    );
    return {
      removed,
      shared: own.length - removable.length,
      next: marked.length < marksMax ? undefined : marked.at(-1)?.node,
    };
  },
});

/** Removes unneeded marks. A mark is needed while its node or a node below it exists. */
function* removeIdleMarks(session: number, nodes: readonly number[]): Tx<void> {
  yield* run(sql`
    DELETE FROM holdfast_session_tombstone
    WHERE session = ${session} AND node IN ${integersOf(nodes)}
      AND NOT EXISTS (SELECT 1 FROM holdfast_session_node n WHERE n.key = node OR n.parent = node)`);
}

interface ForkRange {
  readonly fork_node: number;
  readonly fork_top: number;
}

/** The shared ranges of live forks and their forks. Forks that begin together count as one. */
function* livingForks(session: number): Tx<readonly ForkRange[]> {
  return yield* rows<ForkRange>(sql`
    SELECT f.fork_node, MIN(f.fork_top) AS fork_top FROM (
      WITH RECURSIVE forks (key, fork_node, fork_top, deleted_at) AS (
        SELECT f.key, f.fork_node, f.fork_top, f.deleted_at FROM holdfast_session f WHERE f.forked_from = ${session}
        UNION
        SELECT f.key, f.fork_node, f.fork_top, f.deleted_at
        FROM forks s JOIN holdfast_session f ON f.forked_from = s.key
      )
      SELECT fork_node, fork_top, deleted_at FROM forks) AS f
    WHERE f.deleted_at IS NULL AND f.fork_node IS NOT NULL GROUP BY f.fork_node ORDER BY f.fork_node`);
}

/** The given nodes that a live fork shares: it or one of its forks begins below them. */
function* reachedByForks(
  forks: readonly ForkRange[],
  nodes: readonly number[],
): Tx<ReadonlySet<number>> {
  const reached = new Set<number>();
  for (const { fork_node: end, fork_top: top } of forks) {
    const open = nodes.filter((node) => node >= top && node <= end && !reached.has(node));
    for (const node of yield* onTheWayTo(end, open)) reached.add(node);
  }
  return reached;
}
