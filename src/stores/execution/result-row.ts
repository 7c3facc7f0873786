import type { ResultKind } from "../../model/execution/event.ts";
import type { ExecutionId } from "../../model/ids/execution-id.ts";
import type { Encoded } from "../../model/values/encoded.ts";
import type { Tx } from "../../sql/operation.ts";
import { corruptLog, soundEvent, standing } from "./state-row.ts";

/** A result in its stored form, with its place in the log. */
export interface FinishedResult {
  /** The version of the event that ended it. */
  readonly version: number;
  readonly finishedAt: number;
  readonly resultKind: ResultKind;
  readonly resultHash: string;
  readonly result: Encoded;
  /** The messages that it has not received. */
  readonly unread: number | undefined;
}

/** The result of an execution; undefined while it has not finished. @throws HoldfastError `EXECUTION_NOT_FOUND`, `CORRUPT_ROW`. */
export function* finishedResult(id: ExecutionId): Tx<FinishedResult | undefined> {
  const { key, version, state } = yield* standing(id);
  if (state !== "finished") return undefined;
  const { at, event } = yield* soundEvent(id, key, version);
  if (event.kind !== "finished") throw corruptLog(id, version);
  const { resultKind, resultHash, result, unread } = event;
  return { version, finishedAt: at, resultKind, resultHash, result, unread };
}
