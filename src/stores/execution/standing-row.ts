import type { Encoded } from "../../model/encoded.ts";
import { HoldfastError } from "../../model/errors.ts";
import { executionNotFound } from "../../model/execution-errors.ts";
import type { LoggedEvent, ResultKind } from "../../model/execution-event.ts";
import type { ExecutionId } from "../../model/execution-id.ts";
import { row, type Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { eventAt } from "./event-row.ts";
import { isPresent } from "./state-row.ts";

/** The little of an execution's row that finds the rest. */
export interface Standing {
  readonly key: number;
  readonly version: number;
  readonly responses: number;
  readonly state: string;
}

/** Where an execution stands, or undefined when there is none. */
export function* findStanding(id: ExecutionId): Tx<Standing | undefined> {
  return yield* row<Standing>(sql`
    SELECT key, version, responses, state FROM holdfast_execution WHERE id = ${id} AND ${isPresent(id)}`);
}

/** @throws HoldfastError `EXECUTION_NOT_FOUND` */
export function* standing(id: ExecutionId): Tx<Standing> {
  const found = yield* findStanding(id);
  if (found === undefined) throw executionNotFound(id);
  return found;
}

/** The event of a version that there must be. @throws HoldfastError `CORRUPT_ROW` */
export function* soundEvent(
  id: ExecutionId,
  execution: number,
  version: number,
): Tx<LoggedEvent> {
  const found = yield* eventAt(execution, version);
  if (found === undefined) throw corruptLog(id, version);
  return found;
}

export interface FinishedResult {
  /** Of the event that ended it. */
  readonly version: number;
  readonly finishedAt: number;
  readonly resultKind: ResultKind;
  readonly resultHash: string;
  readonly result: Encoded;
}

/** How an execution ended; undefined when it has not. @throws HoldfastError `EXECUTION_NOT_FOUND`, `CORRUPT_ROW`. */
export function* finishedResult(
  id: ExecutionId,
): Tx<FinishedResult | undefined> {
  const { key, version, state } = yield* standing(id);
  if (state !== "finished") return undefined;
  const { at, event } = yield* soundEvent(id, key, version);
  if (event.kind !== "finished") throw corruptLog(id, version);
  const { resultKind, resultHash, result } = event;
  return { version, finishedAt: at, resultKind, resultHash, result };
}

/** The state row speaks of an event that is not there, or is another one. */
export function corruptLog(id: ExecutionId, version: number): HoldfastError {
  return new HoldfastError(
    "CORRUPT_ROW",
    `Event ${version} of execution ${id} is not there or not what its state says, which no operation of Holdfast leaves behind. ` +
      "Look at the log with a database shell; restore it from a backup.",
    { table: "holdfast_execution_event", key: `${id}#${version}` },
  );
}
