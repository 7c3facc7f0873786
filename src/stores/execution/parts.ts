import type { ExecutionId } from "../../model/ids/execution-id.ts";
import { integersOf } from "../../sql/dialect.ts";
import { row, rows, run, type Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { undamaged } from "../damage.ts";
import { eventOf, type EventRow } from "./event-row.ts";
import {
  finishedResult,
  lockedRecord,
  type ExecutionRecord,
  type FinishedResult,
} from "./state-row.ts";

/**
 * What the registry of processes and schedules compose: the executions of
 * their own are created, cancelled and read through this file.
 */

export type { Finished } from "./context.ts";
export { cancelOrMark } from "./control/lifecycle.ts";
export {
  createIfFree,
  createOrFind,
  newExecution,
  type ExecutionDraft,
  type NewExecution,
} from "./log/create.ts";

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

/** Whether an execution goes on: it is there, and has no end. */
export function* isUnfinished(execution: number): Tx<boolean> {
  const found = yield* row(sql`
    SELECT key FROM holdfast_execution WHERE key = ${execution} AND state <> 'finished'`);
  return found !== undefined;
}

/** Those of some executions that go on, by key. What was removed has ended. */
export function* unfinishedAmong(keys: readonly number[]): Tx<ReadonlyMap<number, ExecutionId>> {
  if (keys.length === 0) return new Map();
  const found = yield* rows<{
    readonly key: number;
    readonly id: ExecutionId;
  }>(sql`
    SELECT key, id FROM holdfast_execution WHERE key IN ${integersOf(keys)} AND state <> 'finished'`);
  return new Map(found.map(({ key, id }) => [key, id]));
}

/** An execution that was there before its process, locked; and how it ended, if it has. */
export function* standingForProcess(id: ExecutionId): Tx<{
  readonly record: ExecutionRecord;
  readonly result: FinishedResult | undefined;
}> {
  const record = yield* lockedRecord(id);
  return { record, result: yield* finishedResult(id) };
}

/** Where in a log an execution ended. */
export interface ResultPlace {
  readonly execution: number;
  readonly version: number;
}

/** The hashes of the results at some places, by `execution#version`: for those who did not copy them. */
export function* resultHashesAt(places: readonly ResultPlace[]): Tx<ReadonlyMap<string, string>> {
  const hashes = new Map<string, string>();
  if (places.length === 0) return hashes;
  const found = yield* rows<EventRow & { readonly execution: number }>(sql`
    SELECT e.execution, e.version, e.at, e.responses, e.kind, e.call, e.seen, e.body, NULL AS payload
    FROM holdfast_execution x JOIN holdfast_execution_event e ON e.execution = x.key AND e.version = x.version
    WHERE x.key IN ${integersOf(places.map(({ execution }) => execution))}`);
  for (const logged of found) {
    const event = undamaged(() => eventOf(logged).event);
    if (event?.kind === "finished")
      hashes.set(`${logged.execution}#${logged.version}`, event.resultHash);
  }
  return hashes;
}
