import { HoldfastError } from "../../model/errors.ts";
import type { LoadedExecution } from "../../stores/execution/lock/locked.ts";
import type { Definition } from "../definition/definitions.ts";

const spoken = { workflow: "a workflow", activity: "an activity" } as const;

/**
 * The reason to park a run whose function is of another kind here. Workflows and activities get
 * different contexts and different retries, so neither can run as the other.
 */
export function otherKind(
  { id, role }: Pick<LoadedExecution, "id" | "role">,
  { name, kind }: Definition,
): HoldfastError {
  const started = role === "activity" ? "activity" : "workflow";
  return new HoldfastError(
    "FUNCTION_MISMATCH",
    `Run ${id} was started as ${spoken[started]}, but ${name} is ${spoken[kind]} in the code of this worker. None of its code was run. ` +
      `If the start was wrong, cancel the run and start it as ${spoken[kind]}. If the code is wrong, unpark the run once workers have ${name} as ${spoken[started]}.`,
    { id, function: name, role: started, kind },
  );
}
