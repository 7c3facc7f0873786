import {
  executionNotFound,
  executionOfProcess,
  executionUnfinished,
} from "../../../model/execution/errors.ts";
import { HoldfastError } from "../../../model/errors.ts";
import {
  parseExecutionId,
  splitToParts,
  type ExecutionId,
} from "../../../model/ids/execution-id.ts";
import { sweep, sweepOptions, type SweepOptions } from "../../removal.ts";
import type { ExecutionContext } from "../context.ts";
import { removeTreeSlice } from "./remove-tree.ts";

export interface EraseProgress {
  readonly rows: number;
}

interface EraseReport extends EraseProgress {
  /** The time of the first erasure, in milliseconds. */
  readonly erasedAt: number;
}

/**
 * Removes all data of a finished run and its descendants, slice by slice, and leaves a tombstone
 * under its id. The first slice marks the root, after which none of it can be read. The same
 * call, or the next sweep of retention, finishes an interrupted erasure.
 */
export async function eraseExecution(
  context: ExecutionContext,
  execution: string,
  options: SweepOptions<EraseProgress> | undefined,
): Promise<EraseReport> {
  const id = parseExecutionId(execution);
  const sweeping = sweepOptions(options);
  refuseChild(id);
  const { database, clock } = context;
  const { rowsPerSlice: rowsMax, signal } = sweeping;
  let first: number | null = null;
  const { rows } = await sweep<EraseProgress>(context, sweeping, async () => {
    const removed = await database.write(
      removeTreeSlice(context),
      { id, at: clock.now(), rowsMax, leaves: "tombstone" },
      { signal },
    );
    const { left, erasedAt } = removed;
    if (left === "unfinished") throw executionUnfinished(id);
    if (left === "process") throw executionOfProcess(id);
    if (erasedAt === null) throw executionNotFound(id);
    first ??= erasedAt;
    return { report: { rows: removed.rows }, isDone: left === "gone" };
  });
  return { rows, erasedAt: first ?? clock.now() };
}

/** A child's result is part of its parent's responses. */
function refuseChild(id: ExecutionId): void {
  const parent = splitToParts(id)?.parent;
  if (parent === undefined) return;
  throw new HoldfastError(
    "OPTION_INVALID",
    `Run ${id} is a child of ${parent}, which holds its answer; nothing was removed. Erase the run at the top of the tree.`,
    { id, parent },
  );
}
