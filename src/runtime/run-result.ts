import { HoldfastError, isHoldfastError } from "../model/errors.ts";
import type { ExecutionResult } from "../model/execution/result.ts";
import type { WaitOptions } from "../sql/database.ts";
import type { RuntimeContext } from "./runtime-context.ts";

/** How a run ended, once it has. A wait whose time is over says how the run stands. */
export async function resultOf(
  context: RuntimeContext,
  id: string,
  options: WaitOptions | undefined,
): Promise<ExecutionResult> {
  const { executions } = context.pages;
  try {
    return await executions.waitForResult(id, options);
  } catch (error) {
    if (!isHoldfastError(error)) throw error;
    // The process is about to end, as it was told to: that is no failure of whoever waits.
    if (error.code === "DATABASE_CLOSED" && context.ending.isBySignal)
      return new Promise(() => undefined);
    throw error.code === "DEADLINE_EXCEEDED"
      ? await withStatus(context, id, error)
      : error;
  }
}

async function withStatus(
  { pages: { executions } }: RuntimeContext,
  id: string,
  error: HoldfastError,
): Promise<HoldfastError> {
  try {
    const { status, interruption } = await executions.get(id);
    const reason =
      interruption?.kind === "parked" ? interruption.reason : undefined;
    return new HoldfastError(
      error.code,
      `${error.message} The run is ${status}${reason === undefined ? "" : `: ${reason}`}.`,
      { ...error.details, status, ...(reason !== undefined && { reason }) },
      { cause: error },
    );
  } catch {
    return error;
  }
}
