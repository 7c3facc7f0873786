import { isHoldfastError } from "../model/errors.ts";
import type { ExecutionStatus } from "../model/execution/status.ts";
import type { Executions } from "../stores/execution/executions.ts";
import type { CliContext } from "./context.ts";
import { standingText } from "./text/run-text.ts";

/** The state of a run before the start, or its absence. */
export type RunBefore =
  | { readonly existed: false }
  | {
      readonly existed: true;
      readonly status: ExecutionStatus;
      /** The same in words. */
      readonly words: string;
    };

/**
 * Looks the run up before the start, since a start returns the same for a new
 * and for an existing run. Only a run with a chosen id can exist.
 */
export async function runBefore(
  context: CliContext,
  executions: Pick<Executions, "get">,
  id: string | undefined,
): Promise<RunBefore> {
  if (id === undefined) return { existed: false };
  try {
    const found = await executions.get(id);
    const words = standingText(context, { ...found, waits: [] });
    return { existed: true, status: found.status, words };
  } catch (error) {
    if (isHoldfastError(error) && error.code === "EXECUTION_NOT_FOUND") return { existed: false };
    throw error;
  }
}

/** The JSON fields for it. */
export function beforeFields(before: RunBefore): {
  readonly existed: boolean;
  readonly status?: ExecutionStatus;
} {
  return before.existed ? { existed: true, status: before.status } : { existed: false };
}

/** `of` is the function or the schedule. */
export function startedText(id: string, of: string, before: RunBefore): string {
  return before.existed
    ? `${id} of ${of} was started before: ${before.words}.`
    : `Started ${id} of ${of}.`;
}
