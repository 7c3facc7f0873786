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
  /** When it was erased first, in milliseconds. */
  readonly erasedAt: number;
}

/**
 * Removes all that a finished run and those below it hold, slice by slice, and
 * leaves a tombstone under its id. The first slice marks the root, so from then
 * on nobody reads any of it; an erasure that was interrupted is ended by the
 * same call again, or by the next sweep of retention.
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

/** Its answer is part of what its parent was given. */
function refuseChild(id: ExecutionId): void {
  const parent = splitToParts(id)?.parent;
  if (parent === undefined) return;
  throw new HoldfastError(
    "OPTION_INVALID",
    `Run ${id} is a child of ${parent}, which holds its answer; nothing was removed. Erase the run at the top of the tree.`,
    { id, parent },
  );
}
