import type { ExecutionId } from "../../../model/execution-id.ts";
import { run } from "../../../sql/operation.ts";
import type { Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { finishedResult, type FinishedResult } from "../standing-row.ts";
import { lockedRecord } from "../state-row.ts";
import type { ExecutionRecord } from "../state-row.ts";

/** What the registry of processes may do to the executions of its own. */

/** The process ends with the execution from now on. */
export function* linkProcess(execution: number, process: number): Tx<void> {
  yield* run(sql`
    UPDATE holdfast_execution SET process = ${process} WHERE key = ${execution}`);
}

/** Retention need not keep the execution any longer. */
export function* unlinkProcess(execution: number): Tx<void> {
  yield* run(sql`
    UPDATE holdfast_execution SET process = NULL WHERE key = ${execution} AND process IS NOT NULL`);
}

/** An execution that was there before its process, locked; and how it ended, if it has. */
export function* standingForProcess(id: ExecutionId): Tx<{
  readonly record: ExecutionRecord;
  readonly result: FinishedResult | undefined;
}> {
  const record = yield* lockedRecord(id);
  return { record, result: yield* finishedResult(id) };
}
