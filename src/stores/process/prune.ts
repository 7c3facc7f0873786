import { coreTypes } from "../../model/process/event-type.ts";
import { plainOperation, row, rows, run, type Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { isDamage, type Damaged } from "../damage.ts";
import { unlinkProcess } from "../execution/parts.ts";
import { sweep, type SweepOptions } from "../removal.ts";
import type { ProcessContext } from "./context.ts";
import { appendToProcess } from "./event-row.ts";
import { lockedProcessByKey } from "./process-row.ts";

interface ProcessPruneReport {
  /** Processes that became tombstones. */
  readonly pruned: number;
  /** Removed events, including those of processes whose earlier pruning was interrupted. */
  readonly rows: number;
  /** Ids of unreadable rows, which pruning skips. */
  readonly damaged: readonly Damaged[];
}

const nothingPruned: ProcessPruneReport = { pruned: 0, rows: 0, damaged: [] };

/**
 * Prunes interrupted processes first, and then those that ended at an instant or before, one slice
 * per transaction.
 */
export async function pruneInSlices(
  context: ProcessContext,
  endedUntil: number,
  options: SweepOptions<ProcessPruneReport> & { readonly rowsPerSlice: number },
): Promise<ProcessPruneReport> {
  const { database, clock } = context;
  const { rowsPerSlice: rowsMax, signal } = options;
  const prunable = prunableProcesses(context, endedUntil);
  let current: PrunablePlace | undefined;
  return sweep(context, options, async () => {
    current ??= (await prunable.next()).value;
    if (current === undefined) return { report: nothingPruned, isDone: true };
    const { key: process, id } = current;
    try {
      const slice = await database.write(
        pruneSlice,
        { process, at: clock.now(), rowsMax },
        { signal },
      );
      if (slice.isDone) current = undefined;
      const pruned = Number(slice.isPruned);
      const report = { pruned, rows: slice.rows, damaged: [] };
      return { report, isDone: false };
    } catch (error) {
      if (!isDamage(error)) throw error;
      current = undefined;
      const damaged = [{ table: "holdfast_process", key: id }];
      return { report: { ...nothingPruned, damaged }, isDone: false };
    }
  });
}

/** Processes whose pruning was interrupted, then ended ones, earliest end first. */
async function* prunableProcesses(
  { database }: ProcessContext,
  endedUntil: number,
): AsyncGenerator<PrunablePlace, undefined> {
  for (let after = 0; ;) {
    const next = await database.read(nextBeingPruned, { after });
    if (next === undefined) break;
    yield next;
    after = next.key;
  }
  for (let after: PrunablePlace | null = null; ;) {
    const page: readonly PrunablePlace[] = await database.read(endedProcesses, {
      endedUntil,
      after,
    });
    yield* page;
    const last = page.at(-1);
    if (last === undefined) return undefined;
    after = last;
  }
}

interface PrunablePlace {
  readonly key: number;
  readonly id: string;
  readonly endedAt: number;
}

interface EndedProcesses {
  readonly endedUntil: number;
  /** The last process of the previous page; null for the first page. */
  readonly after: PrunablePlace | null;
}

const processesPerPage = 100;

const endedProcesses = plainOperation("prunableProcesses", {
  key: () => "",
  *one({ endedUntil, after }: EndedProcesses): Tx<readonly PrunablePlace[]> {
    const { endedAt, key } = after ?? { endedAt: -1, key: 0 };
    return yield* rows<PrunablePlace>(sql`
      SELECT key, id, ended_at AS "endedAt" FROM holdfast_process
      WHERE ended_at IS NOT NULL AND pruned_at IS NULL AND ended_at <= ${endedUntil}
        AND (ended_at, key) > (${endedAt}, ${key})
      ORDER BY ended_at, key LIMIT ${processesPerPage}`);
  },
});

const nextBeingPruned = plainOperation("nextBeingPruned", {
  key: () => "",
  *one({ after }: { readonly after: number }): Tx<PrunablePlace | undefined> {
    return yield* row<PrunablePlace>(sql`
      SELECT key, id, ended_at AS "endedAt" FROM holdfast_process
      WHERE is_pruning = 1 AND key > ${after} ORDER BY key LIMIT 1`);
  },
});

interface PruneSlice {
  readonly process: number;
  readonly at: number;
  readonly rowsMax: number;
}

interface PrunedSlice {
  readonly rows: number;
  /** True when this slice turned the process into a tombstone. */
  readonly isPruned: boolean;
  readonly isDone: boolean;
}

/**
 * Turns an ended process into a tombstone, and removes up to `rowsMax` of its events. From the
 * first slice on, only its end can be read. A mark identifies a process whose pruning was
 * interrupted.
 *
 * @throws HoldfastError `CORRUPT_ROW`
 */
export const pruneSlice = plainOperation("pruneProcessSlice", {
  key: (input) => String(input.process),
  *one({ process, at, rowsMax }: PruneSlice): Tx<PrunedSlice> {
    // Executions are locked before processes.
    const execution = yield* executionOf(process);
    if (execution !== undefined) yield* unlinkProcess(execution);
    const root = yield* lockedProcessByKey(process);
    if (root === undefined || root.state.status === "running")
      return { rows: 0, isPruned: false, isDone: true };
    let { sequence } = root.state;
    const isPruned = root.state.prunedAt === null;
    if (isPruned) {
      const type = coreTypes.pruned;
      const pruned = yield* appendToProcess(root, { type, at, hash: "" });
      sequence = pruned.event.sequence;
      yield* forgetContent(process);
    }
    const rowsRemoved = yield* run(sql`
      DELETE FROM holdfast_process_event WHERE process = ${process} AND sequence IN (
        SELECT sequence FROM holdfast_process_event
        WHERE process = ${process} AND sequence < ${sequence} ORDER BY sequence LIMIT ${rowsMax})`);
    const isDone = rowsRemoved < rowsMax;
    if (isDone)
      yield* run(sql`
        UPDATE holdfast_process SET is_pruning = 0 WHERE key = ${process} AND is_pruning = 1`);
    return { rows: rowsRemoved, isPruned, isDone };
  },
});

/** The execution of an ended process, which retention has kept so far. */
function* executionOf(process: number): Tx<number | undefined> {
  const found = yield* row<{ readonly execution: number | null }>(sql`
    SELECT execution FROM holdfast_process
    WHERE key = ${process} AND ended_at IS NOT NULL AND pruned_at IS NULL`);
  return found?.execution ?? undefined;
}

/** Removes the content of a registration except names, times and hashes. */
function* forgetContent(process: number): Tx<void> {
  yield* run(sql`
    UPDATE holdfast_process SET is_pruning = 1, label = NULL, environment = NULL, caused_by = NULL, event_types = NULL, input = NULL,
      execution = NULL, end_wakes = NULL
    WHERE key = ${process}`);
  yield* run(sql`DELETE FROM holdfast_process_grant WHERE process = ${process}`);
  yield* run(sql`DELETE FROM holdfast_process_lease WHERE process = ${process}`);
}
