import type { Encoded } from "../../../model/encoded.ts";
import { HoldfastError } from "../../../model/errors.ts";
import type { Created, ResultKind } from "../../../model/execution-event.ts";
import { executionNotFound } from "../../../model/execution-errors.ts";
import type { ExecutionId } from "../../../model/execution-id.ts";
import { row, rows, plainOperation } from "../../../sql/operation.ts";
import type { Operation, Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { eventAt } from "../event-row.ts";
import { isPresent } from "../presence.ts";
import { summaryColumns, summaryOf } from "./summary.ts";
import type { ExecutionSummary, SummaryRow } from "./summary.ts";

/** All that is known of an execution beside its log. */
export interface ExecutionDetails extends ExecutionSummary {
  /** In order. */
  readonly tags: readonly string[];
  /** What its code said last about how far it is. */
  readonly progress: Encoded | null;
}

/** @throws HoldfastError `EXECUTION_NOT_FOUND`, `CORRUPT_ROW`. */
export const readExecution: Operation<ExecutionId, ExecutionDetails> =
  plainOperation("readExecution", {
    key: (id: ExecutionId) => id,
    *one(id) {
      const found = yield* row<
        SummaryRow & { readonly progress: Encoded | null }
      >(sql`
        SELECT ${summaryColumns}, progress FROM holdfast_execution WHERE id = ${id} AND ${isPresent(id)}`);
      if (found === undefined) throw executionNotFound(id);
      const tags = yield* rows<{ readonly tag: string }>(sql`
        SELECT tag FROM holdfast_execution_tag WHERE execution = ${found.key} ORDER BY tag`);
      return {
        ...summaryOf(found),
        tags: tags.map(({ tag }) => tag),
        progress: found.progress,
      };
    },
  });

/** What an execution was created with, and when. */
export interface CreatedRequest {
  readonly at: number;
  readonly created: Created;
}

/** @throws HoldfastError `EXECUTION_NOT_FOUND`, `CORRUPT_ROW`. */
export const readCreated: Operation<ExecutionId, CreatedRequest> =
  plainOperation("readCreated", {
    key: (id: ExecutionId) => id,
    *one(id) {
      const { key } = yield* standing(id);
      const first = yield* eventAt(key, 0);
      const { at, event } = first === undefined ? missing(id, 0) : first;
      if (event.kind !== "created") throw corruptLog(id, 0);
      return { at, created: event };
    },
  });

export interface FinishedResult {
  /** Of the event that ended it. */
  readonly version: number;
  readonly finishedAt: number;
  readonly resultKind: ResultKind;
  readonly resultHash: string;
  readonly result: Encoded;
}

/** How an execution ended; undefined when it has not. @throws HoldfastError `EXECUTION_NOT_FOUND`, `CORRUPT_ROW`. */
export const readResult: Operation<ExecutionId, FinishedResult | undefined> =
  plainOperation("readResult", {
    key: (id: ExecutionId) => id,
    *one(id) {
      const { key, version, state } = yield* standing(id);
      if (state !== "finished") return undefined;
      const last = yield* eventAt(key, version);
      const { at, event } = last === undefined ? missing(id, version) : last;
      if (event.kind !== "finished") throw corruptLog(id, version);
      const { resultKind, resultHash, result } = event;
      return { version, finishedAt: at, resultKind, resultHash, result };
    },
  });

/** The little that finds the rest. */
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

/** The state row speaks of an event that is not there. */
export function missing(id: ExecutionId, version: number): never {
  throw corruptLog(id, version);
}

function corruptLog(id: ExecutionId, version: number): HoldfastError {
  return new HoldfastError(
    "CORRUPT_ROW",
    `Event ${version} of execution ${id} is not there or not what its state says, which no operation of Holdfast leaves behind. ` +
      "Look at the log with a database shell; restore it from a backup.",
    { table: "holdfast_execution_event", key: `${id}#${version}` },
  );
}
