import type { ExecutionId } from "../../../model/ids/execution-id.ts";
import { lockRow, textsOf } from "../../../sql/dialect.ts";
import {
  row,
  rows,
  run,
  storeOperation,
  type StoreOperation,
  type Tx,
} from "../../../sql/operation.ts";
import { sql, type Statement } from "../../../sql/statement.ts";
import type { ExecutionContext } from "../context.ts";
import { idsBelow } from "../read/tree.ts";

export interface RemoveTreeSlice {
  readonly id: ExecutionId;
  readonly at: number;
  readonly rowsMax: number;
  /**
   * Whether the row of the root stays, without anything that a user gave: the
   * tombstone of an erased run. Defaults to what the removal was begun as.
   */
  readonly leaves?: "nothing" | "tombstone";
}

export interface RemovedSlice {
  readonly rows: number;
  /**
   * `gone` when nothing of the tree is left but a tombstone, if there is to be
   * one. Nothing was removed when something of it has not ended
   * (`unfinished`), or runs for a process that was not pruned (`process`).
   */
  readonly left: "gone" | "more" | "unfinished" | "process";
  /** When its erasure was begun; null when it is removed. */
  readonly erasedAt: number | null;
}

/**
 * Removes rows of a finished tree, up to a limit. The first slice marks the
 * root: from then on the tree is as good as gone, and one whose removal was
 * interrupted is found by the mark. What goes first are descendants before
 * their ancestors, with events from the oldest on; the root goes last, so that
 * the id is free only when nothing of the old tree is left under it; of an
 * erased run it stays as a tombstone, until retention removes that.
 *
 * Nothing can join a tree in which all has finished, since a child is created
 * under the lock of a parent that has not: so one look is enough.
 */
export const removeTreeSlice: StoreOperation<ExecutionContext, RemoveTreeSlice, RemovedSlice> =
  storeOperation("removeTreeSlice", {
    key: (input: RemoveTreeSlice) => input.id,
    *one(_: ExecutionContext, { id, at, rowsMax, leaves }) {
      const root = yield* row<RootRow>(sql`
        SELECT key, state, removing_at, erased_at, is_erased, process FROM holdfast_execution
        WHERE id = ${id} ${lockRow}`);
      if (root === undefined) return { rows: 0, left: "gone", erasedAt: null };
      if (root.removing_at === null) {
        const left = yield* whatKeeps(id, root);
        if (left !== undefined) return { rows: 0, left, erasedAt: null };
        yield* run(sql`
          UPDATE holdfast_execution SET removing_at = ${at} WHERE key = ${root.key}`);
      }
      const isErasure = leaves === undefined ? root.erased_at !== null : leaves === "tombstone";
      const erasedAt = isErasure ? (root.erased_at ?? at) : null;
      if (isErasure && root.is_erased !== null) return { rows: 0, left: "gone", erasedAt };
      if (erasedAt !== root.erased_at)
        yield* run(sql`
          UPDATE holdfast_execution SET erased_at = ${erasedAt}, is_erased = NULL WHERE key = ${root.key}`);
      const removed = yield* removeRows(id, root.key, rowsMax, isErasure);
      return { ...removed, erasedAt };
    },
  });

interface RootRow {
  readonly key: number;
  readonly state: string;
  readonly removing_at: number | null;
  readonly erased_at: number | null;
  readonly is_erased: number | null;
  readonly process: number | null;
}

function* whatKeeps(
  id: ExecutionId,
  { state, process }: RootRow,
): Tx<"unfinished" | "process" | undefined> {
  if (state !== "finished" || (yield* hasOpenDescendant(id))) return "unfinished";
  return process !== null || (yield* hasProcessBelow(id)) ? "process" : undefined;
}

function* hasOpenDescendant(id: ExecutionId): Tx<boolean> {
  const [low, high] = idsBelow(id);
  const open = yield* row(sql`
    SELECT id FROM holdfast_execution
    WHERE id > ${low} AND id < ${high} AND parent IS NOT NULL AND state <> 'finished' ORDER BY id LIMIT 1`);
  return open !== undefined;
}

/** Whose output is in the log of its execution. */
function* hasProcessBelow(id: ExecutionId): Tx<boolean> {
  const [low, high] = idsBelow(id);
  const found = yield* row(sql`
    SELECT id FROM holdfast_execution
    WHERE id > ${low} AND id < ${high} AND process IS NOT NULL ORDER BY id LIMIT 1`);
  return found !== undefined;
}

function* removeRows(
  id: ExecutionId,
  root: number,
  rowsMax: number,
  isErasure: boolean,
): Tx<Pick<RemovedSlice, "rows" | "left">> {
  const [low, high] = idsBelow(id);
  let removed = 0;
  while (removed < rowsMax) {
    // Locked before its rows go: what adds a line or a backtrace locks it too.
    const last = yield* row<{ readonly key: number }>(sql`
      SELECT key FROM holdfast_execution
      WHERE id > ${low} AND id < ${high} ORDER BY id DESC LIMIT 1 ${lockRow}`);
    const key = last?.key ?? root;
    removed += yield* removeRowsOf(key, rowsMax - removed);
    if (removed >= rowsMax) break;
    if (last === undefined && isErasure) {
      yield* leaveTombstone(root);
      return { rows: removed, left: "gone" };
    }
    yield* run(sql`DELETE FROM holdfast_execution WHERE key = ${key}`);
    removed += 1;
    if (last === undefined) return { rows: removed, left: "gone" };
  }
  return { rows: removed, left: "more" };
}

/**
 * What stays of an erased run: its id, function, times and how it ended. The
 * hash of its input goes too, since a short input could be guessed from it.
 */
function* leaveTombstone(root: number): Tx<void> {
  yield* run(sql`
    UPDATE holdfast_execution SET is_erased = 1, input_hash = '', progress = NULL, concurrency_key = NULL,
      code_version = NULL, incompatible = NULL WHERE key = ${root}`);
}

/** Removes rows that belong to one execution; fewer than asked for means that none is left. */
function* removeRowsOf(execution: number, rowsMax: number): Tx<number> {
  let removed = 0;
  for (const part of parts) {
    if (removed >= rowsMax) return removed;
    removed += yield* part(execution, rowsMax - removed);
  }
  return removed;
}

type RemovePart = (execution: number, rowsMax: number) => Tx<number>;

/** Each removes rows of one table, in the order of its index. */
const parts: readonly RemovePart[] = [
  (execution, rowsMax) => removeBacktraces(execution, rowsMax),
  // No more than a few of them, by the limit on tags.
  (execution) => run(sql`DELETE FROM holdfast_execution_tag WHERE execution = ${execution}`),
  inOrder(
    (of) => sql`SELECT key AS n FROM holdfast_execution_delay WHERE execution = ${of} ORDER BY key`,
    (of, past) =>
      sql`DELETE FROM holdfast_execution_delay WHERE execution = ${of} AND key < ${past}`,
  ),
  inOrder(
    (of) => sql`SELECT key AS n FROM holdfast_execution_log WHERE execution = ${of} ORDER BY key`,
    (of, past) => sql`DELETE FROM holdfast_execution_log WHERE execution = ${of} AND key < ${past}`,
  ),
  inOrder(
    (of) =>
      sql`SELECT seq AS n FROM holdfast_execution_response WHERE execution = ${of} ORDER BY seq`,
    (of, past) =>
      sql`DELETE FROM holdfast_execution_response WHERE execution = ${of} AND seq < ${past}`,
  ),
  inOrder(
    (of) =>
      sql`SELECT version AS n FROM holdfast_execution_event WHERE execution = ${of} ORDER BY version`,
    (of, past) =>
      sql`DELETE FROM holdfast_execution_event WHERE execution = ${of} AND version < ${past}`,
  ),
];

/** Removes rows from the smallest number on, up to the first that would be too many. */
function inOrder(
  numbersOf: (execution: number) => Statement,
  removalOf: (execution: number, past: number) => Statement,
): RemovePart {
  return function* removeInOrder(execution, rowsMax) {
    const past = yield* firstPast(numbersOf(execution), rowsMax);
    return yield* run(removalOf(execution, past));
  };
}

/** The first number past a count of rows; beyond all of them when there are fewer. */
function* firstPast(ordered: Statement, rowsMax: number): Tx<number> {
  const found = yield* row<{ readonly n: number }>(sql`${ordered} LIMIT 1 OFFSET ${rowsMax}`);
  return found?.n ?? Number.MAX_SAFE_INTEGER;
}

/** Versions from one up to, but not including, another. */
interface Versions {
  readonly from: number;
  readonly upTo: number;
}

const allVersions: Versions = { from: 0, upTo: Number.MAX_SAFE_INTEGER };

/** Removes ranges that begin and end within some versions, up to so many rows. */
export function* removeBacktraces(
  execution: number,
  rowsMax: number,
  within: Versions = allVersions,
): Tx<number> {
  let removed = 0;
  while (removed < rowsMax) {
    // With each range goes at most one text.
    const ranges = Math.ceil((rowsMax - removed) / 2);
    const now = yield* removeRanges(execution, ranges, within);
    if (now === 0) break;
    removed += now;
  }
  return removed;
}

/** Texts go with the last range that uses them. */
function* removeRanges(execution: number, rangesMax: number, { from, upTo }: Versions): Tx<number> {
  const ranges = yield* rows<{
    readonly version_from: number;
    readonly hash: string;
  }>(sql`
    SELECT version_from, hash FROM holdfast_execution_backtrace
    WHERE execution = ${execution} AND version_from >= ${from} AND version_to <= ${upTo}
    ORDER BY version_from LIMIT ${rangesMax}`);
  const last = ranges.at(-1);
  if (last === undefined) return 0;
  const removed = yield* run(sql`
    DELETE FROM holdfast_execution_backtrace
    WHERE execution = ${execution} AND version_from >= ${from} AND version_to <= ${upTo}
      AND version_from <= ${last.version_from}`);
  const hashes = textsOf([...new Set(ranges.map(({ hash }) => hash))]);
  // Locked by a statement of its own: the next one then sees what uses them now.
  yield* rows(sql`
    SELECT hash FROM holdfast_execution_stack WHERE hash IN ${hashes} ORDER BY hash ${lockRow}`);
  const unused = yield* run(sql`
    DELETE FROM holdfast_execution_stack WHERE hash IN ${hashes}
      AND NOT EXISTS (SELECT 1 FROM holdfast_execution_backtrace b WHERE b.hash = holdfast_execution_stack.hash)`);
  return removed + unused;
}
