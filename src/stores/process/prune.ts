import { coreTypes } from "../../model/process-event-type.ts";
import { row, rows, run, plainOperation } from "../../sql/operation.ts";
import type { Operation, Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { unlinkProcess } from "../execution/log/spawned.ts";
import { appendToProcess } from "./append-to.ts";
import { lockedProcessByKey } from "./process-row.ts";

export interface Prunable {
  /** Ended at this instant or before. */
  readonly endedUntil: number;
  /** The last one of the page before; null for the first. */
  readonly after: PrunablePlace | null;
  readonly limit: number;
}

export interface PrunablePlace {
  readonly key: number;
  readonly id: string;
  readonly endedAt: number;
}

/** Ended processes, the longest ended first. */
export const prunableProcesses: Operation<Prunable, readonly PrunablePlace[]> =
  plainOperation("prunableProcesses", {
    key: () => "",
    *one({ endedUntil, after, limit }) {
      const { endedAt, key } = after ?? { endedAt: -1, key: 0 };
      return yield* rows<PrunablePlace>(sql`
        SELECT key, id, ended_at AS "endedAt" FROM holdfast_process
        WHERE ended_at IS NOT NULL AND pruned_at IS NULL AND ended_at <= ${endedUntil}
          AND (ended_at, key) > (${endedAt}, ${key})
        ORDER BY ended_at, key LIMIT ${limit}`);
    },
  });

/** A process whose pruning was begun and not ended. */
export const nextBeingPruned: Operation<
  { readonly after: number },
  { readonly key: number; readonly id: string } | undefined
> = plainOperation("nextBeingPruned", {
  key: () => "",
  *one({ after }: { readonly after: number }) {
    return yield* row<{ readonly key: number; readonly id: string }>(sql`
      SELECT key, id FROM holdfast_process WHERE is_pruning = 1 AND key > ${after} ORDER BY key LIMIT 1`);
  },
});

export interface PruneSlice {
  readonly process: number;
  readonly at: number;
  readonly rowsMax: number;
}

export interface PrunedSlice {
  readonly rows: number;
  /** True when the process became a tombstone by this slice. */
  readonly isPruned: boolean;
  readonly isDone: boolean;
}

/**
 * Makes an ended process a tombstone, and removes at most so many of its
 * events. From the first slice on nothing of it can be read but how it ended;
 * one whose pruning was interrupted is found by its mark.
 *
 * @throws HoldfastError `CORRUPT_ROW`
 */
export const pruneSlice: Operation<PruneSlice, PrunedSlice> = plainOperation(
  "pruneProcessSlice",
  {
    key: (input: PruneSlice) => String(input.process),
    *one({ process, at, rowsMax }) {
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
  },
);

/** The execution of a process that has ended, which retention keeps until now. */
function* executionOf(process: number): Tx<number | undefined> {
  const found = yield* row<{ readonly execution: number | null }>(sql`
    SELECT execution FROM holdfast_process
    WHERE key = ${process} AND ended_at IS NOT NULL AND pruned_at IS NULL`);
  return found?.execution ?? undefined;
}

/** What was registered and is nobody's business any more: all but names, times and hashes. */
function* forgetContent(process: number): Tx<void> {
  yield* run(sql`
    UPDATE holdfast_process SET is_pruning = 1, label = NULL, caused_by = NULL, event_types = NULL, input = NULL,
      execution = NULL, end_wakes = NULL
    WHERE key = ${process}`);
  yield* run(
    sql`DELETE FROM holdfast_process_grant WHERE process = ${process}`,
  );
  yield* run(
    sql`DELETE FROM holdfast_process_lease WHERE process = ${process}`,
  );
}
