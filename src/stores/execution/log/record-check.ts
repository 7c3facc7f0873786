import { executionFinished, lockLost, versionConflict } from "../../../model/execution/errors.ts";
import { isSameRun, lastHolder } from "../../../model/execution/state.ts";
import type { Fence } from "../checks.ts";
import type { ExecutionRecord } from "../state-row.ts";

/** @throws HoldfastError `LOCK_LOST` unless this run was the last to lock the execution. */
export function assertHeld({ id, state }: ExecutionRecord, fence: Fence | undefined): void {
  if (fence !== undefined && !isSameRun(lastHolder(state.pending), fence)) throw lockLost(id);
}

/** Checks the version. A finished execution is reported first, for any version that is passed. */
export function assertNext(
  { id, key, state }: ExecutionRecord,
  version: number,
  knownKey?: number,
): void {
  if (state.pending.kind === "finished") throw executionFinished(id, state.version);
  // Another execution has taken the id since.
  if (knownKey !== undefined && knownKey !== key) throw lockLost(id);
  if (state.version + 1 !== version) throw versionConflict(id, state.version + 1, version);
}
