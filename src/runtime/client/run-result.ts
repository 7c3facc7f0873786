import { HoldfastError, isHoldfastError } from "../../model/errors.ts";
import type { ExecutionResult } from "../../model/execution/result.ts";
import { statusOf, type ExecutionStatus } from "../../model/execution/status.ts";
import type { WaitOptions } from "../../sql/database.ts";
import type { RuntimeContext } from "../runtime-context.ts";

/** Waits for the outcome of a run. The error of a wait that times out names the run's status. */
export async function resultOf(
  context: RuntimeContext,
  id: string,
  options: WaitOptions | undefined,
): Promise<ExecutionResult> {
  const { executions } = context.pages;
  try {
    return await context.parked.during(id, executions.waitForResult(id, options));
  } catch (error) {
    if (!isHoldfastError(error)) throw error;
    throw error.code === "DEADLINE_EXCEEDED" ? await withStatus(context, id, error) : error;
  }
}

async function withStatus(
  context: RuntimeContext,
  id: string,
  error: HoldfastError,
): Promise<HoldfastError> {
  // A database that has not answered would not answer for the status either.
  if (error.details["isUnanswered"] === true) return error;
  try {
    const run = await context.pages.executions.get(id);
    const status = await runStatus(context, run);
    const reason = run.interruption?.kind === "parked" ? run.interruption.reason : undefined;
    const why = reason === undefined ? "" : `: ${reason.replace(/\.$/, "")}`;
    return new HoldfastError(
      error.code,
      `${error.message} The run is ${status}${why}.`,
      { ...error.details, status, ...(reason !== undefined && { reason }) },
      { cause: error },
    );
  } catch {
    return error;
  }
}

/** The status of a run. A due run that no worker seems to execute is unserved. */
export async function runStatus(
  { clock, unserved }: RuntimeContext,
  {
    state,
    function: served,
  }: {
    readonly state: Parameters<typeof statusOf>[0];
    readonly function: string;
  },
): Promise<ExecutionStatus | "unserved"> {
  const status = statusOf(state, clock.now());
  if (status !== "pending" || state.pending.kind !== "pending") return status;
  const { dueAt } = state.pending;
  return (await unserved.isUnserved(served, dueAt)) ? "unserved" : status;
}
