import type { ControlEvent, Created, ForkOrigin } from "../../../model/execution/event.ts";
import { HoldfastError } from "../../../model/errors.ts";
import { copyIdTaken, idTakenByRemoved } from "../../../model/execution/errors.ts";
import {
  lineOf,
  parseExecutionId,
  parseOwnExecutionId,
  type ExecutionId,
} from "../../../model/ids/execution-id.ts";
import type { ExecutionState } from "../../../model/execution/state.ts";
import { refuseTurnId } from "../../../model/session/agent.ts";
import type { WaitOptions } from "../../../sql/database.ts";
import { row, run, storeOperation, type Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { optionsAndWait, type Call } from "../../method.ts";
import { sessionByKey } from "../../session-row.ts";
import { checkedVersion } from "../checks.ts";
import type { ExecutionContext } from "../context.ts";
import { eventColumns, eventOf, insertEvent, type EventRow } from "../event-row.ts";
import { createUnder, type CreatedExecution } from "../log/create.ts";
import { announceState } from "../log/respond.ts";
import { begunBodies } from "./fork-begun.ts";
import { assertCopyable, copyEvents, copyResponses, startsUpTo } from "./fork-copy.ts";
import { forkVersion } from "./fork-point.ts";
import { createdAnew, requestAnew } from "./fork-requests.ts";
import { readCreatedEvent } from "../lock/locked.ts";
import {
  findStanding,
  lockedKey,
  lockedRecord,
  standing,
  writeState,
  type ExecutionRecord,
} from "../state-row.ts";

export interface ForkOptions extends WaitOptions {
  /** The copy's id, which makes the call repeatable; defaults to a new `E_…`. */
  readonly id?: string;
}

export interface ForkExecution {
  readonly source: ExecutionId;
  /**
   * The last event to copy. Without it the run is retried: the copy keeps its progress up to the
   * newest failure of a step or child that another attempt may change.
   */
  readonly version?: number;
  /** The copy's id. */
  readonly id: ExecutionId;
  readonly at: number;
}

export function givenFork(
  context: ExecutionContext,
  source: string,
  version: number,
  options?: ForkOptions,
): Call<ForkExecution> {
  const { input, wait } = givenRetry(context, source, options);
  return { input: { ...input, version: checkedVersion(version) }, wait };
}

export function givenRetry(
  { clock, ids }: ExecutionContext,
  source: string,
  options?: ForkOptions,
): Call<ForkExecution> {
  const { options: given, wait } = optionsAndWait(options, ["id"]);
  const id = given.id === undefined ? ids.nextId("E") : parseOwnExecutionId(given.id);
  refuseTurnId(id);
  const input = { source: parseExecutionId(source), id, at: clock.now() };
  return { input, wait };
}

/**
 * Copies an execution up to an event into a new one, which continues from there. Unanswered
 * requests are repeated. A repeated call with the same id finds the copy, even if the source has
 * been removed since.
 * @throws HoldfastError `EXECUTION_NOT_FOUND`, `FORK_POINT_INVALID`,
 *   `FORK_TOO_LARGE`, `NOT_FAILED` when there is nothing to try again,
 *   `EXECUTION_EXISTS`, `EXECUTION_BEING_REMOVED`.
 */
export const forkExecution = storeOperation("forkExecution", {
  key: (input) => input.id,
  *one(_: ExecutionContext, input: ForkExecution): Tx<CreatedExecution> {
    const { source, id, at } = input;
    const earlier = yield* earlierFork(input);
    if (earlier !== undefined) return earlier;
    const record = yield* lockedSource(source);
    if (input.version === undefined) yield* refuseTurnRetry(record);
    const { prunedBefore } = yield* standing(source);
    const version = yield* forkVersion(record, input.version, prunedBefore);
    assertCopyable(record, version, prunedBefore);
    const created = yield* createdOf(record, at, {
      version,
      isRetry: input.version === undefined,
    });
    const { forkedFrom: from } = created;
    const outcome = yield* createUnder(null, { id, at, created });
    if (outcome.existed) return (yield* earlierFork(input)) ?? notTheSame(id);
    yield* fillFork(record, { key: outcome.key, id }, from, at);
    // A copy at its creation has no gap before it.
    if (version > 0) yield* notePruned(outcome.key, prunedBefore);
    return { ...outcome, id, nextVersion: from.version + 2 };
  },
});

/**
 * Refuses to retry a turn of a session: the copy would not be its open turn and could claim nothing.
 * @throws HoldfastError `FORK_POINT_INVALID`
 */
function* refuseTurnRetry({ id, session: key }: ExecutionRecord): Tx<void> {
  if (key === null) return;
  const session = (yield* sessionByKey(key))?.id ?? "";
  throw new HoldfastError(
    "FORK_POINT_INVALID",
    `Run ${id} took a turn of session "${session}", so it cannot be retried. Call queue.retry("${session}"), which gives the work that is held back to the next turn.`,
    { id, session },
  );
}

/** The earlier copy, if it exists and is the same. */
function* earlierFork({ id, source, version }: ForkExecution): Tx<CreatedExecution | undefined> {
  const found = yield* row<{
    readonly key: number;
    readonly version: number;
    readonly state: string;
    readonly removing_at: number | null;
    readonly erased_at: number | null;
  }>(sql`
    SELECT key, version, state, removing_at, erased_at FROM holdfast_execution WHERE id = ${id}`);
  if (found === undefined) return undefined;
  if (found.removing_at !== null) throw idTakenByRemoved(id, found.erased_at);
  const { key, state } = found;
  const { forkedFrom } = yield* readCreatedEvent(id, key);
  const isSame =
    forkedFrom !== null &&
    forkedFrom.execution === source &&
    forkedFrom.isRetry === (version === undefined) &&
    (forkedFrom.isRetry || forkedFrom.version === version);
  if (!isSame) return notTheSame(id);
  const nextVersion = state === "finished" ? found.version : found.version + 1;
  return { id, key, nextVersion, existed: true };
}

function notTheSame(id: ExecutionId): never {
  throw copyIdTaken(id);
}

/**
 * Locks the source. In a tree that is being removed, results are removed before the executions that
 * received them. While a finished execution is copied, all its ancestors must therefore stay
 * unchanged.
 */
function* lockedSource(id: ExecutionId): Tx<ExecutionRecord> {
  const above = lineOf(id).slice(0, -1);
  if (above.length > 0 && (yield* findStanding(id))?.state === "finished")
    for (const ancestor of above) yield* lockedKey(ancestor);
  return yield* lockedRecord(id);
}

/**
 * The creation of the copy. Its code computes the same as the original's, including the start time.
 */
function* createdOf(
  { id, key, state: { historyFrom } }: ExecutionRecord,
  at: number,
  { version, isRetry }: Pick<ForkOrigin, "version" | "isRetry">,
): Tx<Created & { readonly forkedFrom: ForkOrigin }> {
  const created = yield* readCreatedEvent(id, key);
  const found = yield* row<{ readonly created_at: number }>(sql`
    SELECT created_at FROM holdfast_execution WHERE key = ${key}`);
  const createdAt = found?.created_at ?? at;
  const original = created.forkedFrom?.original ?? { execution: id, createdAt };
  const begun = isRetry
    ? (yield* begunBodies([{ id, key, created }], { historyFrom, keptUpTo: version })).get(key)
    : undefined;
  return {
    ...createdAnew(id, created, { createdAt, at, isRetry, begun }),
    scheduledAt: created.scheduledAt,
    forkedFrom: { execution: id, version, isRetry, original },
  };
}

function* fillFork(
  source: ExecutionRecord,
  copy: { readonly key: number; readonly id: ExecutionId },
  from: ForkOrigin,
  at: number,
): Tx<void> {
  const responses = yield* copyResponses(source, copy.key, from);
  yield* copyEvents(source.key, copy.key, from.version, responses);
  const starts = yield* startsUpTo(copy.key, source.state, from.version);
  const { isRetry } = from;
  yield* requestAnew({ ...copy, historyFrom: starts.historyFrom, isRetry }, at);
  const forked: ControlEvent = { kind: "forked", from };
  const version = from.version + 1;
  yield* insertEvent({ execution: copy.key, version, at, responses }, forked);
  const state: ExecutionState = {
    role: source.state.role,
    version,
    pending: { kind: "pending", dueAt: at, leaseUntil: null, lastLock: null },
    lifecycle: "active",
    failures: 0,
    deaths: 0,
    aloneDeaths: 0,
    incompatible: [],
    ...(yield* lastTerms(copy.key)),
    ...starts,
    responses,
  };
  yield* writeState(copy.key, state);
  yield* announceState({ id: copy.id, function: source.function }, state);
}

/** Records the part of the history that the source has lost, and the copy therefore lacks. */
function* notePruned(copy: number, prunedBefore: number): Tx<void> {
  if (prunedBefore > 0)
    yield* run(sql`
      UPDATE holdfast_execution SET pruned_before = ${prunedBefore} WHERE key = ${copy}`);
}

/** The terms of the last lock among the copied events. */
function* lastTerms(execution: number): Tx<Pick<ExecutionState, "retry" | "codeVersion">> {
  const lock = yield* row<EventRow>(sql`
    SELECT ${eventColumns} FROM holdfast_execution_event
    WHERE execution = ${execution} AND kind = 'locked' ORDER BY version DESC LIMIT 1`);
  const locked = lock && eventOf(lock).event;
  const retry = locked?.kind === "locked" ? locked.retry : null;
  // JSON escapes quotes, so no text can contain the searched string.
  const named = yield* row<EventRow>(sql`
    SELECT ${eventColumns} FROM holdfast_execution_event
    WHERE execution = ${execution} AND kind IN ('created', 'locked') AND body NOT LIKE '%"codeVersion":null%'
    ORDER BY version DESC LIMIT 1`);
  const event = named && eventOf(named).event;
  const isNamed = event?.kind === "locked" || event?.kind === "created";
  return { retry, codeVersion: isNamed ? event.codeVersion : null };
}
