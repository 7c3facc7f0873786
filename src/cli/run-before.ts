import { isHoldfastError } from "../model/errors.ts";
import type { ExecutionStatus } from "../model/execution/status.ts";
import type { Executions } from "../stores/execution/executions.ts";
import type { CliContext } from "./context.ts";
import { standingText } from "./text/run-text.ts";

/** Whether a run was there before it was to be started, and how it stood then. */
export type RunBefore =
  | { readonly existed: false }
  | {
      readonly existed: true;
      readonly status: ExecutionStatus;
      /** The same in words. */
      readonly words: string;
    };

/**
 * Looked up beforehand, since a start answers the same for a new run and for
 * one that it finds. Only what has an id that somebody chose can be there.
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

/** What programs are told of it. */
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
