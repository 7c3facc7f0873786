import type { ExecutionId } from "../../../model/ids/execution-id.ts";
import { lockRow, textsOf } from "../../../sql/dialect.ts";
import { row, rows, run, storeOperation, type Tx } from "../../../sql/operation.ts";
import { sql, type Statement } from "../../../sql/statement.ts";
import { eraseStream, removeStream } from "../../stream/parts.ts";
import type { ExecutionContext } from "../context.ts";
import { idsBelow } from "../read/tree.ts";

export interface RemoveTreeSlice {
  readonly id: ExecutionId;
  readonly at: number;
  readonly rowsMax: number;
  /**
   * `tombstone` keeps the row of the root, without any data that a user gave: the tombstone of an
   * erased run. Defaults to the kind of removal that was begun.
   */
  readonly leaves?: "nothing" | "tombstone";
}

export interface RemovedSlice {
  readonly rows: number;
  /**
   * `gone` if nothing of the tree is left, except a tombstone where one is wanted. Nothing was
   * removed if a part of it has not finished (`unfinished`), or runs for a process that was not
   * pruned (`process`).
   */
  readonly left: "gone" | "more" | "unfinished" | "process";
  /** The start of its erasure; null when it is being removed. */
  readonly erasedAt: number | null;
}

/**
 * Removes rows of a finished tree, up to a limit. The first slice marks the root. From then on the
 * tree counts as missing, and the mark finds an interrupted removal. Descendants are removed before
 * their ancestors, with events from the oldest on. The root is removed last, so that the id is free
 * only when nothing of the old tree is left under it. The root of an erased run stays as a
 * tombstone, until retention removes it.
 *
 * Nothing can join a finished tree, since a child is created under the lock of an unfinished
 * parent: one check is enough.
 */
export const removeTreeSlice = storeOperation("removeTreeSlice", {
  key: (input) => input.id,
  *one(_: ExecutionContext, { id, at, rowsMax, leaves }: RemoveTreeSlice): Tx<RemovedSlice> {
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

/** True if a descendant belongs to a process, whose output is in the log of its execution. */
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
    // Locked before its rows are removed: a transaction that adds a line or a backtrace locks it
    // too.
    const last = yield* row<{ readonly key: number }>(sql`
      SELECT key FROM holdfast_execution
      WHERE id > ${low} AND id < ${high} ORDER BY id DESC LIMIT 1 ${lockRow}`);
    const key = last?.key ?? root;
    removed += yield* removeRowsOf(key, rowsMax - removed, isErasure);
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
 * Strips an erased run down to its id, function, times and outcome. The hash of its input is
 * removed too, since a short input could be guessed from it.
 */
function* leaveTombstone(root: number): Tx<void> {
  yield* run(sql`
    UPDATE holdfast_execution SET is_erased = 1, input_hash = '', progress = NULL, concurrency_key = NULL,
      code_version = NULL, incompatible = NULL WHERE key = ${root}`);
}

/** Removes rows that belong to one execution; fewer than requested means that none is left. */
function* removeRowsOf(execution: number, rowsMax: number, isErasure: boolean): Tx<number> {
  // First: it is no part of the record, and need not be complete.
  let removed = yield* isErasure
    ? eraseStream(execution, rowsMax)
    : removeStream(execution, rowsMax);
  for (const part of parts) {
    if (removed >= rowsMax) return removed;
    removed += yield* part(execution, rowsMax - removed);
  }
  return removed;
}

type RemovePart = (execution: number, rowsMax: number) => Tx<number>;

/** Removers of the rows of one table each, in the order of its index. */
const parts: readonly RemovePart[] = [
  (execution, rowsMax) => removeBacktraces(execution, rowsMax),
  // Few rows, by the limit on tags.
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

/** Removes rows from the smallest number on, up to the first one beyond the limit. */
function inOrder(
  numbersOf: (execution: number) => Statement,
  removalOf: (execution: number, past: number) => Statement,
): RemovePart {
  return function* removeInOrder(execution, rowsMax) {
    const past = yield* firstPast(numbersOf(execution), rowsMax);
    return yield* run(removalOf(execution, past));
  };
}

/** The first number after a count of rows; beyond all of them if there are fewer. */
function* firstPast(ordered: Statement, rowsMax: number): Tx<number> {
  const found = yield* row<{ readonly n: number }>(sql`${ordered} LIMIT 1 OFFSET ${rowsMax}`);
  return found?.n ?? Number.MAX_SAFE_INTEGER;
}

/** Versions from one (inclusive) up to another (exclusive). */
interface Versions {
  readonly from: number;
  readonly upTo: number;
}

const allVersions: Versions = { from: 0, upTo: Number.MAX_SAFE_INTEGER };

/** Removes ranges that begin and end within some versions, up to a number of rows. */
export function* removeBacktraces(
  execution: number,
  rowsMax: number,
  within: Versions = allVersions,
): Tx<number> {
  let removed = 0;
  while (removed < rowsMax) {
    // Each range removes at most one text.
    const ranges = Math.ceil((rowsMax - removed) / 2);
    const now = yield* removeRanges(execution, ranges, within);
    if (now === 0) break;
    removed += now;
  }
  return removed;
}

/** Removes ranges. A text is removed with the last range that uses it. */
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
  // Locked by a statement of its own: the next one then sees the current uses.
  yield* rows(sql`
    SELECT hash FROM holdfast_execution_stack WHERE hash IN ${hashes} ORDER BY hash ${lockRow}`);
  const unused = yield* run(sql`
    DELETE FROM holdfast_execution_stack WHERE hash IN ${hashes}
      AND NOT EXISTS (SELECT 1 FROM holdfast_execution_backtrace b WHERE b.hash = holdfast_execution_stack.hash)`);
  return removed + unused;
}
