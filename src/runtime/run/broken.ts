import { HoldfastError, isHoldfastError } from "../../model/errors.ts";
import { spokenError } from "../../model/values/stored-error.ts";
import type { RunState } from "./run-state.ts";

/**
 * Parks a run after a fault that neither its code nor the store can handle: a failing payload
 * codec, or a bug in this package. Its records stay, and the other runs continue.
 */
export function broke(run: RunState, error: unknown): void {
  if (run.isOver) return;
  const reason = isHoldfastError(error) ? error : cannotBeRecorded(run, error);
  if (run.poison !== undefined) return run.host.lost(run, reason);
  run.poison = reason;
  run.again();
}

export function cannotBeRecorded({ id }: RunState, cause: unknown): HoldfastError {
  return new HoldfastError(
    "EVENTS_INVALID",
    `Run ${id} reached something that cannot be recorded: ${spokenError(cause)}. It is parked.`,
    { id },
    { cause },
  );
}
