import type { Encoded } from "../../../model/encoded.ts";
import type { ExecutionEvent, Holder } from "../../../model/execution-event.ts";
import {
  eventsInvalid,
  executionFinished,
  lockLost,
  versionConflict,
} from "../../../model/execution-errors.ts";
import { splitToParts } from "../../../model/execution-id.ts";
import type { ExecutionId } from "../../../model/execution-id.ts";
import { isSameRun, lastHolder } from "../../../model/execution-state.ts";
import { row, plainOperation } from "../../../sql/operation.ts";
import type { Operation, Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { appendManyOnPostgres } from "./append.many.postgres.ts";
import { answeredBefore } from "./append-again.ts";
import { appendTo } from "./append-to.ts";
import { createUnder } from "./create.ts";
import type { NewExecution } from "./create.ts";
import { assertAppendable, isAppendable } from "./event-check.ts";
import { insertWithEffects } from "./event-effects.ts";
import { changesVersionAlone, isFinish, isQuiet } from "./event-weight.ts";
import { lockedRecord } from "../state-row.ts";
import type { ExecutionRecord } from "../state-row.ts";

export interface AppendEvents {
  readonly id: ExecutionId;
  /** Saves a lookup by those who know it. */
  readonly key?: number;
  /** The version the first event is to get: the one nobody has used yet. */
  readonly version: number;
  readonly at: number;
  readonly events: readonly ExecutionEvent[];
  /** Appends only while this run was the last to lock the execution. */
  readonly fence?: Pick<Holder, "executor" | "run">;
  /** Created in the same transaction, for what the events request or schedule. */
  readonly children?: readonly NewExecution[];
  /** The parent that is told of the end. It follows from the id; here it is checked. */
  readonly respondTo?: ExecutionId;
  /** Whether two encoded values mean the same; the same text unless told. Asked when the call is made again. */
  readonly isSameValue?: (stored: Encoded, given: Encoded) => boolean;
}

export interface AppendOutcome {
  /** The version the next event gets; of a finished execution the last one's. */
  readonly nextVersion: number;
}

/**
 * Appends events that occupy `version` and those after it; all of them, with
 * the children created and the parent answered, or nothing. The same call
 * again, when the log holds its events already, answers as the first did.
 *
 * @throws HoldfastError `EXECUTION_NOT_FOUND`, `EXECUTION_FINISHED`,
 *   `VERSION_CONFLICT`, `LOCK_LOST`, `EVENTS_INVALID`, `DELAY_EXISTS`,
 *   `EXECUTION_EXISTS`, and what a transition refuses.
 */
export const appendEvents: Operation<AppendEvents, AppendOutcome> =
  plainOperation("appendEvents", {
    snapshotSafe: true,
    key: (input: AppendEvents) => input.id,
    *one(input) {
      assertAppendable(input);
      const quick = input.events.every(changesVersionAlone)
        ? yield* appendQuietly(input)
        : undefined;
      return quick ?? (yield* appendWithState(input));
    },
    many: appendManyOnPostgres,
    // What cannot be appended is for `one` to refuse.
    manyTakes: (input) =>
      (isQuiet(input) || isFinish(input)) && isAppendable(input),
  });

interface Moved {
  readonly key: number;
  readonly responses: number;
}

/**
 * One conditional update instead of reading the state first: most appends are
 * this, and it is a fifth faster. When it changes nothing, the other way finds
 * out why.
 */
function* appendQuietly(input: AppendEvents): Tx<AppendOutcome | undefined> {
  const { id, version, at, events, fence } = input;
  const which =
    input.key === undefined
      ? sql`id = ${id}`
      : sql`key = ${input.key} AND id = ${id}`;
  const held =
    fence === undefined
      ? sql`1 = 1`
      : sql`executor = ${fence.executor} AND run = ${fence.run}`;
  const moved = yield* row<Moved>(sql`
    UPDATE holdfast_execution SET version = version + ${events.length}, deaths = 0
    WHERE ${which} AND version = ${version - 1} AND state <> 'finished' AND lifecycle = 'active'
      AND role <> 'external' AND ${held}
    RETURNING key, responses`);
  if (moved === undefined) return undefined;
  let next = version;
  for (const event of events) {
    yield* insertWithEffects(
      {
        id,
        execution: moved.key,
        version: next,
        at,
        responses: moved.responses,
      },
      event,
    );
    next += 1;
  }
  yield* createChildren(id, moved.key, input.children);
  return { nextVersion: next };
}

function* appendWithState(input: AppendEvents): Tx<AppendOutcome> {
  const { id, version, at, events } = input;
  const record = yield* lockedRecord(id);
  if (!isNext(record, version)) {
    const before = yield* answeredBefore(record, input);
    if (before !== undefined) return before;
  }
  assertNext(record, version, input.key);
  assertHeld(record, input.fence);
  const state = yield* appendTo(record, at, events);
  yield* createChildren(id, record.key, input.children);
  const isFinished = state.pending.kind === "finished";
  return { nextVersion: isFinished ? state.version : state.version + 1 };
}

function isNext({ state }: ExecutionRecord, version: number): boolean {
  return state.pending.kind !== "finished" && state.version + 1 === version;
}

/** @throws HoldfastError `LOCK_LOST` unless this run was the last to lock the execution. */
export function assertHeld(
  { id, state }: ExecutionRecord,
  fence: AppendEvents["fence"],
): void {
  if (fence !== undefined && !isSameRun(lastHolder(state.pending), fence))
    throw lockLost(id);
}

/** Finished comes before the version: the log has ended, whatever the caller knew. */
export function assertNext(
  { id, key, state }: ExecutionRecord,
  version: number,
  knownKey?: number,
): void {
  if (state.pending.kind === "finished")
    throw executionFinished(id, state.version);
  // Another execution has taken the id since.
  if (knownKey !== undefined && knownKey !== key) throw lockLost(id);
  if (state.version + 1 !== version)
    throw versionConflict(id, state.version + 1, version);
}

function* createChildren(
  parent: ExecutionId,
  key: number,
  children: readonly NewExecution[] | undefined,
): Tx<void> {
  for (const child of children ?? []) {
    const parts = splitToParts(child.id);
    if (parts !== undefined && parts.parent !== parent)
      throw eventsInvalid(parent, "owner", `${child.id} is not a child of it.`);
    const { existed } = yield* createUnder(
      parts === undefined ? null : key,
      child,
    );
    // A child of ours that we did not create: the log would tell a story that did not happen.
    if (existed && parts !== undefined)
      throw eventsInvalid(
        parent,
        "childExists",
        `its child ${child.id} exists already.`,
      );
  }
}
