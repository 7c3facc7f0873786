import { instantOf } from "../../model/clock.ts";
import { isHoldfastError } from "../../model/errors.ts";
import { executionCodec } from "../../model/execution-codec.ts";
import type { ExecutionId } from "../../model/execution-id.ts";
import { isFields } from "../../model/payload-schema.ts";
import type { Tx } from "../../sql/operation.ts";
import { requestCancellation } from "../execution/control/lifecycle.ts";
import type { Finished } from "../execution/context.ts";
import { lockedRecord } from "../execution/state-row.ts";
import { appendDeclared } from "./append-declared.ts";
import type {
  AppendedProcessEvent,
  AppendProcessEvent,
} from "./append-event.ts";
import { foundProcess, lockedProcess } from "./process-row.ts";

/** Records that a process is to stop, and asks the execution that it runs as to end. */
export function* appendCancelRequest(
  input: AppendProcessEvent,
): Tx<AppendedProcessEvent> {
  const { row, state } = yield* foundProcess(input.process);
  const id = state.prunedAt === null ? row.execution_id : null;
  // Executions are locked before processes, and the request comes before the end it may bring.
  const isThere = id !== null && (yield* isLocked(id));
  const appended = yield* appendDeclared(
    yield* lockedProcess(input.process),
    input,
  );
  if (id === null || !isThere || appended.status !== "running") return appended;
  yield* requestCancellation({
    id,
    at: instantOf(input.now),
    ...resultOf(input),
  });
  const { status } = (yield* foundProcess(input.process)).state;
  return { ...appended, status };
}

/** The reason that was given, and the result that the execution gets if it can be ended at once. */
function resultOf({ payload, codec }: AppendProcessEvent): {
  readonly reason: string | null;
  readonly cancelled: Finished;
} {
  const value = codec.decode(payload.encoded);
  const given = isFields(value) ? value["reason"] : null;
  const reason = typeof given === "string" ? given : null;
  const results = executionCodec(codec);
  return {
    reason,
    cancelled: results.finished({
      kind: "cancelled",
      ...(reason !== null && { reason }),
    }),
  };
}

/** Locks the execution of a process; false when somebody has removed it by hand. */
export function* isLocked(id: ExecutionId): Tx<boolean> {
  try {
    yield* lockedRecord(id);
    return true;
  } catch (error) {
    if (isHoldfastError(error) && error.code === "EXECUTION_NOT_FOUND")
      return false;
    throw error;
  }
}
