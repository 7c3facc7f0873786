import type { ExecutionId } from "../../model/ids/execution-id.ts";
import type { OwnSignal } from "../../model/ids/own-signal.ts";
import type { Database } from "../../sql/database.ts";
import { integersOf } from "../../sql/dialect.ts";
import { row, rows, run, type Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import type { StoreOptions } from "../context.ts";
import { undamaged } from "../damage.ts";
import { writes, type Method } from "../method.ts";
import { executionContext } from "./context.ts";
import {
  givenOwnSignal,
  sendSignal,
  type SendSignalOutcome,
  type SignalOptions,
} from "./control/signals.ts";
import { eventOf, type EventRow } from "./event-row.ts";
import { finishedResult, type FinishedResult } from "./result-row.ts";
import { lockedRecord, type ExecutionRecord } from "./state-row.ts";

/**
 * The parts of executions that the registry of processes and the schedules use to create, cancel
 * and read their own executions. Maintenance compares and repairs rows of executions through this
 * file.
 */

export type { Finished } from "./context.ts";
export { deliveredResult } from "./delivered.ts";
export { suspiciousExecutions, type Suspicious } from "./standing/contradictions.ts";
export { repairExecution, type RepairedRun } from "./standing/repair.ts";
export { cancelOrMark } from "./control/lifecycle.ts";
export {
  createIfFree,
  createOrFind,
  newExecution,
  type ExecutionDraft,
  type NewExecution,
} from "./log/create.ts";

/** Sends a signal of Holdfast's own. */
export function ownSignal(
  database: Database,
  options?: StoreOptions,
): Method<
  [id: string, signal: OwnSignal, value: unknown, options?: SignalOptions],
  SendSignalOutcome
> {
  return writes(executionContext(database, options), sendSignal, givenOwnSignal);
}

/** Links a process to an execution: from now on the process ends with it. */
export function* linkProcess(execution: number, process: number): Tx<void> {
  yield* run(sql`
    UPDATE holdfast_execution SET process = ${process} WHERE key = ${execution}`);
}

/** Unlinks the process: retention no longer needs to keep the execution. */
export function* unlinkProcess(execution: number): Tx<void> {
  yield* run(sql`
    UPDATE holdfast_execution SET process = NULL WHERE key = ${execution} AND process IS NOT NULL`);
}

/** True if the execution exists and has not finished. */
export function* isUnfinished(execution: number): Tx<boolean> {
  const found = yield* row(sql`
    SELECT key FROM holdfast_execution WHERE key = ${execution} AND state <> 'finished'`);
  return found !== undefined;
}

/** The unfinished ones among some executions, by key. A removed execution counts as finished. */
export function* unfinishedAmong(keys: readonly number[]): Tx<ReadonlyMap<number, ExecutionId>> {
  if (keys.length === 0) return new Map();
  const found = yield* rows<{
    readonly key: number;
    readonly id: ExecutionId;
  }>(sql`
    SELECT key, id FROM holdfast_execution WHERE key IN ${integersOf(keys)} AND state <> 'finished'`);
  return new Map(found.map(({ key, id }) => [key, id]));
}

/** Locks an execution that existed before its process, and returns it with its result, if any. */
export function* standingForProcess(id: ExecutionId): Tx<{
  readonly record: ExecutionRecord;
  readonly result: FinishedResult | undefined;
}> {
  const record = yield* lockedRecord(id);
  return { record, result: yield* finishedResult(id) };
}

/** The position in a log at which an execution ended. */
export interface ResultPlace {
  readonly execution: number;
  readonly version: number;
}

/**
 * The hashes of the results at some places, by `execution#version`, for callers that did not copy
 * them.
 */
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
