import { integersOf, keysOf, lockRow } from "../../sql/dialect.ts";
import { row, rows, run, storeOperation, type Tx } from "../../sql/operation.ts";
import { sql, type Statement } from "../../sql/statement.ts";
import { attachmentsOwned } from "../attachment/attachment-row.ts";
import { removeOwned } from "../removal.ts";
import { ownedBySessions } from "../session-owned.ts";
import { removeUnused } from "../blob-roots.ts";
import type { SessionContext } from "./context.ts";

/**
 * An import that has written nothing for one hour has ended, since one of its steps takes seconds.
 */
export const importIdleMs = 3_600_000;

interface ReclaimSlice {
  /** The key of a deleted session. */
  readonly session: number;
  readonly at: number;
  readonly rowsMax: number;
  /** Standalone blobs stored later stay. */
  readonly putUntil: number;
  /** Nodes from this key on were examined before. */
  readonly before: number | undefined;
}

export interface ReclaimedSlice {
  readonly rows: number;
  readonly blobs: number;
  readonly attachments: number;
  /** Nodes that stay because forks share them. */
  readonly shared: number;
  /** The key to continue from; undefined when this session is finished. */
  readonly before: number | undefined;
  /** A deleted session that kept nodes for this one and may no longer need to. */
  readonly alsoReclaim: number | undefined;
}

const nothing: ReclaimedSlice = {
  rows: 0,
  blobs: 0,
  attachments: 0,
  shared: 0,
  before: undefined,
  alsoReclaim: undefined,
};

/**
 * Removes about `rowsMax` rows of a deleted session at most. Its nodes are removed from the newest
 * on. A node that a fork shares stays with all nodes before it, until the fork is gone too.
 */
export const reclaimSlice = storeOperation("reclaimSessionSlice", {
  key: (input) => String(input.session),
  *one(_: SessionContext, input: ReclaimSlice): Tx<ReclaimedSlice> {
    const { session, at, rowsMax, putUntil } = input;
    const root = yield* lockTombstone(session, at);
    if (root === undefined) return nothing;
    const nodes = yield* peelNodes(session, input.before ?? Number.MAX_SAFE_INTEGER, rowsMax);
    const slice = {
      ...nothing,
      rows: nodes.removed,
      shared: nodes.shared,
      before: nodes.before,
    };
    if (nodes.before !== undefined) return slice;
    const others = yield* removeOthers(session, rowsMax, putUntil);
    const rowsRemoved = slice.rows + others.rows;
    // 0 is below every key: all nodes have been examined.
    if (!others.isDone) return { ...slice, ...others, rows: rowsRemoved, before: 0 };
    const kept = yield* row(sql`
      SELECT key FROM holdfast_session_node WHERE ${keysOf(session, 0)} ORDER BY session, key LIMIT 1`);
    if (kept === undefined)
      yield* run(
        root.generation < 0
          ? sql`DELETE FROM holdfast_session WHERE key = ${session}`
          : sql`UPDATE holdfast_session SET reclaimed_at = ${at} WHERE key = ${session}`,
      );
    return {
      ...slice,
      ...others,
      rows: rowsRemoved,
      alsoReclaim: yield* deletedSource(root.forked_from),
    };
  },
});

/**
 * Locks a deleted session, or the remains of an import that no longer writes. An active import is
 * skipped.
 */
function* lockTombstone(
  session: number,
  at: number,
): Tx<{ readonly generation: number; readonly forked_from: number | null } | undefined> {
  const root = yield* row<{
    readonly generation: number;
    readonly deleted_at: number | null;
    readonly importing_at: number | null;
    readonly forked_from: number | null;
  }>(sql`
    SELECT generation, deleted_at, importing_at, forked_from FROM holdfast_session
    WHERE key = ${session} ${lockRow}`);
  if (root === undefined || root.deleted_at === null) return undefined;
  if (root.importing_at === null) return root;
  if (root.importing_at > at - importIdleMs) return undefined;
  // From now on the import is refused if it resumes.
  yield* run(sql`
    UPDATE holdfast_session SET importing_at = NULL WHERE key = ${session}`);
  return root;
}

/** Removes nodes from the newest on. Nodes that another node or a live fork builds on stay. */
function* peelNodes(
  session: number,
  before: number,
  rowsMax: number,
): Tx<{
  readonly removed: number;
  readonly shared: number;
  readonly before: number | undefined;
}> {
  const found = yield* rows<{
    readonly key: number;
    readonly parent: number | null;
    readonly followers: number;
  }>(sql`
    SELECT n.key, n.parent,
      (SELECT COUNT(*) FROM holdfast_session_node f WHERE f.parent = n.key)
        + (SELECT COUNT(*) FROM holdfast_session s WHERE s.fork_node = n.key AND s.deleted_at IS NULL) AS followers
    FROM holdfast_session_node n
    WHERE ${keysOf(session, 0, before - 1)} ORDER BY n.session DESC, n.key DESC LIMIT ${rowsMax}`);
  const followers = new Map(found.map((node) => [node.key, node.followers]));
  const removable: number[] = [];
  for (const { key, parent } of found) {
    if ((followers.get(key) ?? 0) > 0) continue;
    removable.push(key);
    if (parent !== null) followers.set(parent, (followers.get(parent) ?? 1) - 1);
  }
  if (removable.length > 0)
    yield* run(sql`
      DELETE FROM holdfast_session_node WHERE key IN ${integersOf(removable)}`);
  return {
    removed: removable.length,
    shared: found.length - removable.length,
    before: found.length < rowsMax ? undefined : found.at(-1)?.key,
  };
}

function* removeOthers(
  session: number,
  rowsMax: number,
  putUntil: number,
): Tx<{
  readonly rows: number;
  readonly blobs: number;
  readonly attachments: number;
  readonly isDone: boolean;
}> {
  const { rows: own, hashes } = yield* removeRowsOf(session, rowsMax);
  const { blobs } = yield* removeUnused({ hashes, putUntil });
  if (own >= rowsMax) return { rows: own, blobs, attachments: 0, isDone: false };
  const attachments = yield* removeOwned(attachmentsOwned, session, rowsMax - own);
  const removed = own + attachments;
  const others =
    removed < rowsMax ? yield* removeOwned(ownedBySessions, session, rowsMax - removed) : 0;
  return {
    rows: removed + others,
    blobs,
    attachments,
    isDone: removed + others < rowsMax,
  };
}

/**
 * The nearest deleted source; those in between have nothing left. A live source keeps all that it
 * needs itself.
 */
function* deletedSource(source: number | null): Tx<number | undefined> {
  for (let key = source; key !== null;) {
    const found = yield* row<{
      readonly deleted_at: number | null;
      readonly reclaimed_at: number | null;
      readonly forked_from: number | null;
    }>(sql`
      SELECT deleted_at, reclaimed_at, forked_from FROM holdfast_session WHERE key = ${key}`);
    if (found === undefined || found.deleted_at === null) return undefined;
    if (found.reclaimed_at === null) return key;
    key = found.forked_from;
  }
  return undefined;
}

/**
 * Removes rows of a session except its nodes. Fewer than requested means that none are left.
 * Returns the blobs that they referred to.
 */
export function* removeRowsOf(
  session: number,
  rowsMax: number,
): Tx<{ readonly rows: number; readonly hashes: readonly string[] }> {
  const blobs = yield* rows<{ readonly blob: string }>(sql`
    SELECT blob FROM holdfast_session_component WHERE session = ${session}
    UNION
    SELECT blob FROM holdfast_session_frame WHERE session = ${session} AND blob IS NOT NULL`);
  // A host has few of these, so one statement removes them.
  let removed = yield* run(sql`
    DELETE FROM holdfast_session_component WHERE session = ${session}`);
  removed += yield* run(sql`
    DELETE FROM holdfast_session_frame WHERE session = ${session}`);
  const left = (): number => Math.max(0, rowsMax - removed);
  const marked = yield* firstPast(
    sql`SELECT node AS n FROM holdfast_session_tombstone WHERE session = ${session} ORDER BY node`,
    left(),
  );
  removed += yield* run(sql`
    DELETE FROM holdfast_session_tombstone WHERE session = ${session} AND node < ${marked}`);
  const used = yield* firstPast(
    sql`SELECT key AS n FROM holdfast_session_usage WHERE ${keysOf(session, 0)} ORDER BY session, key`,
    left(),
  );
  removed += yield* run(sql`
    DELETE FROM holdfast_session_usage WHERE ${keysOf(session, 0, used - 1)}`);
  const turn = yield* row<{ readonly turn: string }>(sql`
    SELECT turn FROM holdfast_session_turn WHERE session = ${session} ORDER BY turn LIMIT 1 OFFSET ${left()}`);
  removed += yield* run(
    turn === undefined
      ? sql`DELETE FROM holdfast_session_turn WHERE session = ${session}`
      : sql`DELETE FROM holdfast_session_turn WHERE session = ${session} AND turn < ${turn.turn}`,
  );
  return { rows: removed, hashes: blobs.map(({ blob }) => blob) };
}

/** The first number after `rowsMax` rows; greater than all when there are fewer. */
function* firstPast(ordered: Statement, rowsMax: number): Tx<number> {
  const found = yield* row<{ readonly n: number }>(sql`${ordered} LIMIT 1 OFFSET ${rowsMax}`);
  return found?.n ?? Number.MAX_SAFE_INTEGER;
}
