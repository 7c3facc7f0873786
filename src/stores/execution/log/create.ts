import type { Duration } from "../../../model/time/durations.ts";
import type { HoldfastError } from "../../../model/errors.ts";
import type { Created, ExecutionRole } from "../../../model/execution/event.ts";
import {
  executionBeingRemoved,
  executionExists,
  executionFinished,
  idTakenByRemoved,
  parentNotFound,
  refusedByLifecycle,
} from "../../../model/execution/errors.ts";
import {
  parseExecutionId,
  splitToParts,
  type ExecutionId,
} from "../../../model/ids/execution-id.ts";
import type { Lifecycle } from "../../../model/execution/state.ts";
import { parseFunctionName } from "../../../model/ids/function-name.ts";
import { instantAfter, resolveStartAt, type StartAt } from "../../../model/time/instants.ts";
import { checkedText, draftOf, givenFlag } from "../../../model/shape.ts";
import type { WaitOptions } from "../../../sql/database.ts";
import { lockRow } from "../../../sql/dialect.ts";
import {
  announce,
  row,
  run,
  storeOperation,
  type StoreOperation,
  type Tx,
} from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { onlyWait, type Call } from "../../method.ts";
import { checkedMetadata, checkedRole, checkedTags } from "../checks.ts";
import type { ExecutionContext } from "../context.ts";
import { insertEvent } from "../event-row.ts";
import { isPresent } from "../state-row.ts";
import { pendingWork, timerSet } from "../topics.ts";
import { createManyOnPostgres } from "./create.many.postgres.ts";

/** What is to be run, and when. */
export interface ExecutionDraft {
  /** Chosen by the caller, so that creating twice is creating once; defaults to a new `E_…`. */
  readonly id?: string;
  readonly function: string;
  readonly input?: unknown;
  /** Defaults to `workflow`. */
  readonly role?: ExecutionRole;
  /** Defaults to `"now"`. */
  readonly startAt?: StartAt;
  /** It ends as timed out when it is not done by then. */
  readonly deadline?: Duration;
  readonly concurrencyKey?: string;
  readonly codeVersion?: string;
  readonly tags?: readonly string[];
  readonly metadata?: Readonly<Record<string, string>>;
  readonly isPaused?: boolean;
  readonly scheduledBy?: ExecutionId;
}

/** An execution to be created. A child's id tells its parent, which must exist. */
export interface NewExecution {
  readonly id: ExecutionId;
  readonly at: number;
  readonly created: Created;
}

export function givenCreate(
  context: ExecutionContext,
  draft: ExecutionDraft,
  wait?: WaitOptions,
): Call<NewExecution> {
  const input = newExecution(context, draft, context.clock.now());
  return { input, wait: onlyWait(wait) };
}

export const draftNames: readonly (keyof ExecutionDraft)[] = [
  "id",
  "function",
  "input",
  "role",
  "startAt",
  "deadline",
  "concurrencyKey",
  "codeVersion",
  "tags",
  "metadata",
  "isPaused",
  "scheduledBy",
];

/** An execution as it is stored, from what a caller said of it. */
export function newExecution(
  { ids, values }: Pick<ExecutionContext, "ids" | "values">,
  given: ExecutionDraft,
  at: number,
): NewExecution {
  const draft = draftOf("the execution", given, draftNames);
  const { id, startAt = "now", deadline, scheduledBy } = draft;
  const { role = "workflow", concurrencyKey, codeVersion } = draft;
  const { isPaused, metadata = {}, tags = [] } = draft;
  const created: Created = {
    kind: "created",
    role: checkedRole(role),
    function: parseFunctionName(draft.function),
    ...values.input(draft.input),
    scheduledAt: resolveStartAt(startAt, at),
    deadlineAt: deadline === undefined ? null : instantAfter(at, deadline, "a deadline"),
    concurrencyKey:
      concurrencyKey === undefined ? null : checkedText("A concurrency key", concurrencyKey),
    codeVersion: codeVersion === undefined ? null : checkedText("A code version", codeVersion),
    isPaused: givenFlag("isPaused", isPaused) ?? false,
    scheduledBy: scheduledBy === undefined ? null : parseExecutionId(scheduledBy),
    forkedFrom: null,
    metadata: checkedMetadata(metadata),
    tags: checkedTags(tags),
  };
  return {
    id: id === undefined ? ids.nextId("E") : parseExecutionId(id),
    at,
    created,
  };
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
export const createExecution: StoreOperation<ExecutionContext, NewExecution, CreateOutcome> =
  storeOperation("createExecution", {
    snapshotSafe: true,
    key: (input: NewExecution) => input.id,
    one: (_: ExecutionContext, input) => createOrFind(input),
    many: createManyOnPostgres,
    manyTakes: ({ created }) => created.tags.length === 0,
  });

/** What is locked in the same transaction is due to nobody. */
interface Creating {
  readonly isLocked?: boolean;
}

/** The same as a part of other operations. */
export function* createOrFind(input: NewExecution, creating?: Creating): Tx<CreateOutcome> {
  const parts = splitToParts(input.id);
  if (parts === undefined) return yield* createUnder(null, input, creating);
  const parent = yield* lockedParentOf(parts.parent, input.id);
  const refusal = refusalBy(parts.parent, parent);
  if (refusal === undefined) return yield* createUnder(parent.key, input, creating);
  // Creating twice is creating once, also when the parent has gone on.
  const found = yield* existing(input);
  if (found === undefined) throw refusal;
  return unlessTaken(found);
}

/** With the id, which its caller may not have chosen. */
export interface CreatedExecution extends CreateOutcome {
  readonly id: ExecutionId;
}

export function shownNew(
  _: ExecutionContext,
  outcome: CreateOutcome,
  { id }: NewExecution,
): CreatedExecution {
  return { ...outcome, id };
}

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

function refusalBy(id: ExecutionId, { version, state, lifecycle }: Parent): Error | undefined {
  if (state === "finished") return executionFinished(id, version);
  return lifecycle === "cancelling" ? refusedByLifecycle(id, lifecycle) : undefined;
}

/** So often an id that was taken is free when looked at; then somebody creates and removes it all the time. */
const roundsMax = 5;

/** The same when the parent's key is known, and its row locked. */
export function* createUnder(
  parent: number | null,
  input: NewExecution,
  creating?: Creating,
): Tx<CreateOutcome> {
  return unlessTaken(yield* createIfFree(parent, input, creating));
}

/** An id that another execution has, with what is to be said of that. */
export interface Taken {
  readonly refusal: HoldfastError;
}

function unlessTaken(outcome: CreateOutcome | Taken): CreateOutcome {
  if ("refusal" in outcome) throw outcome.refusal;
  return outcome;
}

/** The same for those to whom a taken id is an answer. */
export function* createIfFree(
  parent: number | null,
  input: NewExecution,
  { isLocked = false }: Creating = {},
): Tx<CreateOutcome | Taken> {
  for (let round = 0; round < roundsMax; round += 1) {
    const key = yield* insertState(parent, input);
    if (key !== undefined) return yield* begin(key, input, isLocked);
    const found = yield* existing(input);
    if (found !== undefined) return found;
    // It was in our way a moment ago; retention has taken it since.
  }
  return { refusal: executionBeingRemoved(input.id) };
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
  { id, at, created }: NewExecution,
  isLocked: boolean,
): Tx<CreateOutcome> {
  yield* insertEvent({ execution: key, version: 0, at, responses: 0 }, created);
  for (const tag of created.tags)
    yield* run(sql`
      INSERT INTO holdfast_execution_tag (tag, execution) VALUES (${tag}, ${key})`);
  if (created.role !== "external" && !created.isPaused && !isLocked)
    yield* announce(pendingWork, created.function);
  if (created.deadlineAt !== null) yield* announce(timerSet, id);
  return { key, nextVersion: 1, existed: false };
}

/** The one under the same id, if there is one; taken when it is not the same. */
function* existing({ id, created }: NewExecution): Tx<CreateOutcome | Taken | undefined> {
  const found = yield* row<{
    readonly key: number;
    readonly function: string;
    readonly input_hash: string;
    readonly version: number;
    readonly state: string;
    readonly removing_at: number | null;
    readonly erased_at: number | null;
  }>(sql`
    SELECT key, function, input_hash, version, state, removing_at, erased_at FROM holdfast_execution WHERE id = ${id}`);
  if (found === undefined) return undefined;
  if (found.removing_at !== null) return { refusal: idTakenByRemoved(id, found.erased_at) };
  if (found.function !== created.function) return { refusal: executionExists(id, "function") };
  if (found.input_hash !== created.inputHash) return { refusal: executionExists(id, "input") };
  const { key, version, state } = found;
  const nextVersion = state === "finished" ? version : version + 1;
  return { key, nextVersion, existed: true };
}
