import type { Created } from "../../../model/execution-event.ts";
import {
  executionBeingRemoved,
  executionExists,
  executionFinished,
  parentNotFound,
  refusedByLifecycle,
} from "../../../model/execution-errors.ts";
import { splitToParts } from "../../../model/execution-id.ts";
import type { ExecutionId } from "../../../model/execution-id.ts";
import type { Lifecycle } from "../../../model/execution-state.ts";
import { lockRow } from "../../../sql/dialect.ts";
import { announce, row, run, plainOperation } from "../../../sql/operation.ts";
import type { Operation, Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { createManyOnPostgres } from "./create.many.postgres.ts";
import { insertEvent } from "../event-row.ts";
import { isPresent } from "../presence.ts";
import { pendingWork, timerSet } from "../topics.ts";

/** An execution to be created. A child's id tells its parent, which must exist. */
export interface NewExecution {
  readonly id: ExecutionId;
  readonly at: number;
  readonly created: Created;
  readonly tags?: readonly string[];
}

export interface CreateOutcome {
  readonly key: number;
  /** The version the next event gets. */
  readonly nextVersion: number;
  /** True when it was there already, with the same function and an equal input. */
  readonly existed: boolean;
}

/**
 * Creates an execution, or finds the one created before under the same id
 * with the same function and an equal input.
 *
 * @throws HoldfastError `EXECUTION_EXISTS` when function or input differ,
 *   `EXECUTION_BEING_REMOVED` while the id is not free yet; for a child
 *   `EXECUTION_NOT_FOUND`, `EXECUTION_FINISHED` or `EXECUTION_CANCELLING` when
 *   its parent is not there, or can have no more children.
 */
export const createExecution: Operation<NewExecution, CreateOutcome> =
  plainOperation("createExecution", {
    snapshotSafe: true,
    key: (input: NewExecution) => input.id,
    *one(input) {
      const parts = splitToParts(input.id);
      if (parts === undefined) return yield* createUnder(null, input);
      const parent = yield* lockedParentOf(parts.parent, input.id);
      const refusal = refusalBy(parts.parent, parent);
      if (refusal === undefined) return yield* createUnder(parent.key, input);
      // Creating twice is creating once, also when the parent has gone on.
      const found = yield* existing(input);
      if (found === undefined) throw refusal;
      return found;
    },
    many: createManyOnPostgres,
    manyTakes: ({ tags }) => tags === undefined || tags.length === 0,
  });

interface Parent {
  readonly key: number;
  readonly version: number;
  readonly state: string;
  readonly lifecycle: Lifecycle;
}

/** Locked, so that it cannot end, and be removed, before its child is there. */
function* lockedParentOf(id: ExecutionId, child: ExecutionId): Tx<Parent> {
  const found = yield* row<Parent>(sql`
    SELECT key, version, state, lifecycle FROM holdfast_execution
    WHERE id = ${id} AND ${isPresent(id)} ${lockRow}`);
  if (found === undefined) throw parentNotFound(id, child);
  return found;
}

function refusalBy(
  id: ExecutionId,
  { version, state, lifecycle }: Parent,
): Error | undefined {
  if (state === "finished") return executionFinished(id, version);
  return lifecycle === "cancelling"
    ? refusedByLifecycle(id, lifecycle)
    : undefined;
}

/** So often an id that was taken is free when looked at; then somebody creates and removes it all the time. */
const roundsMax = 5;

/** The same when the parent's key is known, and its row locked. */
export function* createUnder(
  parent: number | null,
  input: NewExecution,
): Tx<CreateOutcome> {
  for (let round = 0; round < roundsMax; round += 1) {
    const key = yield* insertState(parent, input);
    if (key !== undefined) return yield* begin(key, input);
    const found = yield* existing(input);
    if (found !== undefined) return found;
    // It was in our way a moment ago; retention has taken it since.
  }
  throw executionBeingRemoved(input.id);
}

function* insertState(
  parent: number | null,
  { id, at, created }: NewExecution,
): Tx<number | undefined> {
  const isExternal = created.role === "external";
  const inserted = yield* row<{ readonly key: number }>(sql`
    INSERT INTO holdfast_execution
      (id, parent, role, function, input_hash, created_at, scheduled_at, version, state, lifecycle, due_at,
       failures, deaths, responses, history_from, code_version, concurrency_key, deadline_at)
    VALUES (${id}, ${parent}, ${created.role}, ${created.function}, ${created.inputHash}, ${at}, ${created.scheduledAt},
       0, ${isExternal ? "blocked" : "pending"}, ${created.isPaused ? "paused" : "active"},
       ${isExternal ? null : created.scheduledAt},
       0, 0, 0, 0, ${created.codeVersion}, ${created.concurrencyKey}, ${created.deadlineAt})
    ON CONFLICT (id) DO NOTHING RETURNING key`);
  return inserted?.key;
}

function* begin(
  key: number,
  { id, at, created, tags }: NewExecution,
): Tx<CreateOutcome> {
  yield* insertEvent({ execution: key, version: 0, at, responses: 0 }, created);
  for (const tag of tags ?? [])
    yield* run(sql`
      INSERT INTO holdfast_execution_tag (tag, execution) VALUES (${tag}, ${key})`);
  if (created.role !== "external" && !created.isPaused)
    yield* announce(pendingWork, created.function);
  if (created.deadlineAt !== null) yield* announce(timerSet, id);
  return { key, nextVersion: 1, existed: false };
}

/** The one under the same id, if it is there and the same. */
function* existing({
  id,
  created,
}: NewExecution): Tx<CreateOutcome | undefined> {
  const found = yield* row<{
    readonly key: number;
    readonly function: string;
    readonly input_hash: string;
    readonly version: number;
    readonly state: string;
    readonly removing_at: number | null;
  }>(sql`
    SELECT key, function, input_hash, version, state, removing_at FROM holdfast_execution WHERE id = ${id}`);
  if (found === undefined) return undefined;
  if (found.removing_at !== null) throw executionBeingRemoved(id);
  if (found.function !== created.function)
    throw executionExists(id, "function");
  if (found.input_hash !== created.inputHash)
    throw executionExists(id, "input");
  const { key, version, state } = found;
  const nextVersion = state === "finished" ? version : version + 1;
  return { key, nextVersion, existed: true };
}
