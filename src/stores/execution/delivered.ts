import { corruptRow } from "../../model/corrupt-row.ts";
import type { LoggedEvent, LoggedResponse } from "../../model/execution/event.ts";
import type { RecordedResult } from "../../model/execution/result.ts";
import type { ExecutionId } from "../../model/ids/execution-id.ts";
import { changedRow } from "../damage.ts";
import type { ExecutionContext } from "./context.ts";
import type { StoredResponse } from "./event-row.ts";
import type { FinishedResult } from "./result-row.ts";

/**
 * Values as they are returned to workers and callers. A value stored with a hash is checked against
 * it: a value that was changed on disk is reported as damage and never returned. Outcomes of steps
 * have no hash: docs/adr says what that would cost.
 */

type Values = Pick<ExecutionContext, "values">;

const eventTable = "holdfast_execution_event";
const responseTable = "holdfast_execution_response";

/** @throws HoldfastError `CORRUPT_ROW`, `VALUE_MALFORMED`, `PAYLOAD_CODEC_FAILED` */
export function deliveredEvent(
  { values }: Values,
  id: ExecutionId,
  logged: LoggedEvent,
): LoggedEvent<unknown> {
  const read = values.readEvent(logged);
  const { event } = read;
  const isSame =
    event.kind === "finished"
      ? values.agreesResult(event.result, event.resultHash)
      : (event.kind !== "created" && event.kind !== "continued") ||
        values.agrees(event.input, event.inputHash);
  if (isSame) return read;
  throw changedRow(eventTable, `${id}#${read.version}`);
}

/** @throws HoldfastError as `deliveredEvent` does */
export function deliveredResponse(
  { values }: Values,
  id: ExecutionId,
  { hash, ...logged }: StoredResponse,
): LoggedResponse<unknown> {
  const key = `${id}#${logged.seq}`;
  const { kind } = logged.response;
  // The result of a child is in the child's log, which is removed only together with the parent's.
  if (kind !== "delay" && hash === null) throw corruptRow(responseTable, key, "has lost its value");
  const read = values.readResponse(logged);
  const { response } = read;
  if (response.kind === "signal" && !values.agrees(response.value, hash ?? ""))
    throw changedRow(responseTable, key);
  if (response.kind === "child" && !values.agreesResult(response.result, hash ?? ""))
    throw changedRow(eventTable, `${response.child}#${response.finishedVersion}`);
  return read;
}

/** @throws HoldfastError as `deliveredEvent` does */
export function deliveredResult(
  { values }: Values,
  id: ExecutionId,
  { version, result, resultHash, resultKind, unread }: Omit<FinishedResult, "finishedAt">,
): RecordedResult {
  const read = values.readResult(result, resultKind);
  if (values.agreesResult(read, resultHash))
    return unread === undefined ? read : { ...read, unread };
  throw changedRow(eventTable, `${id}#${version}`);
}
