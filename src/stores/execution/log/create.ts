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
import { noMetadata, type Metadata } from "../../../model/execution/metadata.ts";
import type { Lifecycle } from "../../../model/execution/state.ts";
import { refuseTurn } from "../../../model/session/agent.ts";
import { parseFunctionName, type FunctionName } from "../../../model/ids/function-name.ts";
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

/** The function, input and options of an execution to create. */
export interface ExecutionDraft {
  /** An id chosen by the caller makes the call repeatable; defaults to a new `E_…`. */
  readonly id?: string;
  readonly function: string;
  readonly input?: unknown;
  /** Defaults to `workflow`. */
  readonly role?: ExecutionRole;
  /** Defaults to `"now"`. */
  readonly startAt?: StartAt;
  /** The time after which an unfinished execution ends as timed out. */
  readonly deadline?: Duration;
  readonly concurrencyKey?: string;
  readonly codeVersion?: string;
  readonly tags?: readonly string[];
  /** At most 16 short texts, stored in the clear; children inherit it. */
  readonly metadata?: Metadata;
  readonly isPaused?: boolean;
  readonly scheduledBy?: ExecutionId;
}

/** An execution to create. A child's id names its parent, which must exist. */
export interface NewExecution {
  readonly id: ExecutionId;
  readonly at: number;
  readonly created: Created;
  /**
   * The hash of its input in the clear, which finds an execution that is older than the payload
   * codec.
   */
  readonly clearHash?: string | undefined;
  /** The key of the session whose turn it is. */
  readonly session?: number;
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

/** Builds the stored form of an execution from a caller's draft. */
export function newExecution(
  { ids, values }: Pick<ExecutionContext, "ids" | "values">,
  given: ExecutionDraft,
  at: number,
): NewExecution {
  const draft = draftOf("the execution", given, draftNames);
  const { id, role = "workflow" } = draft;
  checkedRole(role);
  parseFunctionName(draft.function);
  const created = createdOf(values, { ...draft, role }, at);
  const own = id === undefined ? ids.nextId("E") : parseExecutionId(id);
  refuseTurn(own, created.function);
  return {
    id: own,
    at,
    created,
    clearHash: values.clearHash(draft.input),
  };
}

/** A child as its parent's code requests it: the runtime chose its id, role and function. */
export interface RequestedChild extends Pick<
  ExecutionDraft,
  "input" | "deadline" | "concurrencyKey" | "tags"
> {
  readonly id: ExecutionId;
  readonly role: ExecutionRole;
  readonly function: FunctionName;
  /** The parent's. */
  readonly metadata: Metadata;
}

/**
 * The same for a child. Code may request ten thousand at once, which blocks the event loop for as
 * long as this takes: values from the runtime are not checked again.
 */
export function newRequestedChild(
  { values }: Pick<ExecutionContext, "values">,
  draft: RequestedChild,
  at: number,
): NewExecution {
  const { metadata, ...others } = draft;
  return { id: draft.id, at, created: createdOf(values, others, at, metadata) };
}

const noTags: Created["tags"] = [];

/** Checks the remaining fields here. */
function createdOf(
  values: ExecutionContext["values"],
  draft: ExecutionDraft & Required<Pick<ExecutionDraft, "role">>,
  at: number,
  inherited?: Metadata,
): Created {
  const { startAt = "now", deadline, scheduledBy } = draft;
  const { concurrencyKey, codeVersion, isPaused, metadata, tags } = draft;
  const { input, inputHash } = values.input(draft.input);
  return {
    kind: "created",
    role: draft.role,
    function: draft.function as FunctionName,
    input,
    inputHash,
    scheduledAt: resolveStartAt(startAt, at),
    deadlineAt: deadline === undefined ? null : instantAfter(at, deadline, "a deadline"),
    concurrencyKey:
      concurrencyKey === undefined ? null : checkedText("A concurrency key", concurrencyKey),
    codeVersion: codeVersion === undefined ? null : checkedText("A code version", codeVersion),
    isPaused: givenFlag("isPaused", isPaused) ?? false,
    scheduledBy: scheduledBy === undefined ? null : parseExecutionId(scheduledBy),
    forkedFrom: null,
    metadata: inherited ?? (metadata === undefined ? noMetadata : checkedMetadata(metadata)),
    tags: tags === undefined ? noTags : checkedTags(tags),
  };
}

export interface CreateOutcome {
  readonly key: number;
  /** The version of the next event. */
  readonly nextVersion: number;
  /** True if it existed already, with the same function and an equal input. */
  readonly existed: boolean;
}

/**
 * Creates an execution, or finds an existing one with the same id and function and an equal input.
 * @throws HoldfastError `EXECUTION_EXISTS` when function or input differ,
 *   `EXECUTION_BEING_REMOVED` until the id is free; for a child
 *   `EXECUTION_NOT_FOUND`, `EXECUTION_FINISHED` or `EXECUTION_CANCELLING` when
 *   its parent is missing, or cannot have further children.
 */
export const createExecution: StoreOperation<ExecutionContext, NewExecution, CreateOutcome> =
  storeOperation("createExecution", {
    snapshotSafe: true,
    key: (input: NewExecution) => input.id,
    one: (_: ExecutionContext, input) => createOrFind(input),
    many: createManyOnPostgres,
    manyTakes: ({ created }) => created.tags.length === 0,
  });

/** An execution that is locked in the same transaction is not announced as due. */
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
  // Creating is repeatable, even after the parent has continued.
  const found = yield* existing(input);
  if (found === undefined) throw refusal;
  return unlessTaken(found);
}

/** The outcome with the id, which the caller may not have chosen. */
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

/** The parent, locked so that it cannot end or be removed before its child exists. */
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

/**
 * The number of times that a taken id may be free on the next read. After that, another process
 * must be creating and removing it continuously.
 */
const roundsMax = 5;

/** The same for a parent whose key is known and whose row is locked. */
export function* createUnder(
  parent: number | null,
  input: NewExecution,
  creating?: Creating,
): Tx<CreateOutcome> {
  return unlessTaken(yield* createIfFree(parent, input, creating));
}

/** An id that another execution has, with the error that describes it. */
export interface Taken {
  readonly refusal: HoldfastError;
}

function unlessTaken(outcome: CreateOutcome | Taken): CreateOutcome {
  if ("refusal" in outcome) throw outcome.refusal;
  return outcome;
}

/** The same for callers that treat a taken id as an outcome. */
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
    // The row that blocked the insert has since been removed by retention.
  }
  return { refusal: executionBeingRemoved(input.id) };
}

/** Creates an execution at the top; false for a taken id, whatever has it. */
export function* createUnlessTaken(input: NewExecution): Tx<boolean> {
  const key = yield* insertState(null, input);
  if (key === undefined) return false;
  yield* begin(key, input, false);
  return true;
}

function* insertState(
  parent: number | null,
  { id, at, created, session }: NewExecution,
): Tx<number | undefined> {
  const isExternal = created.role === "external";
  const inserted = yield* row<{ readonly key: number }>(sql`
    INSERT INTO holdfast_execution
      (id, parent, role, function, input_hash, created_at, scheduled_at, version, state, lifecycle, due_at,
       failures, deaths, responses, history_from, code_version, concurrency_key, deadline_at, session)
    VALUES (${id}, ${parent}, ${created.role}, ${created.function}, ${created.inputHash}, ${at}, ${created.scheduledAt},
       0, ${isExternal ? "blocked" : "pending"}, ${created.isPaused ? "paused" : "active"},
       ${isExternal ? null : created.scheduledAt},
       0, 0, 0, 0, ${created.codeVersion}, ${created.concurrencyKey}, ${created.deadlineAt},
       ${session ?? null})
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

/** The execution with the same id, if any; `Taken` if it differs. */
function* existing({
  id,
  created,
  clearHash,
}: NewExecution): Tx<CreateOutcome | Taken | undefined> {
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
  if (found.input_hash !== created.inputHash && found.input_hash !== clearHash)
    return { refusal: executionExists(id, "input") };
  const { key, version, state } = found;
  const nextVersion = state === "finished" ? version : version + 1;
  return { key, nextVersion, existed: true };
}
