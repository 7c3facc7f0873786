import { corruptRow } from "../../../model/corrupt-row.ts";
import type { HoldfastError } from "../../../model/errors.ts";
import type {
  Created,
  ExecutionRole,
  Holder,
  LoggedEvent,
  LoggedResponse,
} from "../../../model/execution/event.ts";
import { runSeed } from "../../../model/execution/seed.ts";
import { lastHolder, type ExecutionState } from "../../../model/execution/state.ts";
import type { ExecutionId } from "../../../model/ids/execution-id.ts";
import type { FunctionName } from "../../../model/ids/function-name.ts";
import { integersOf } from "../../../sql/dialect.ts";
import { rows, type Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { undamaged } from "../../damage.ts";
import type { ExecutionContext } from "../context.ts";
import { cancellationOf, type CancellationView } from "../control/cancelling.ts";
import { eventAt, eventColumns, eventOf, type EventRow } from "../event-row.ts";
import type { NewExecution } from "../log/create.ts";
import type { ExecutionRecord } from "../state-row.ts";
import { historyPage, responsePage, unreadPage, type ReadBudget } from "./history.ts";
import type { LockedInputs } from "./inputs.ts";

/** What a worker needs to run an execution. */
export interface LockedExecution {
  readonly id: ExecutionId;
  readonly key: number;
  readonly role: ExecutionRole;
  readonly function: FunctionName;
  readonly nextVersion: number;
  readonly input: unknown;
  /** What the input was hashed to when it was given. */
  readonly inputHash: string;
  /** When that input was given; of a copy, when it was to the original. */
  readonly startedAt: number;
  /** What its random numbers follow from: the same for copies, another one after each new start. */
  readonly seed: bigint;
  /** Its input is the very same value, unless the execution was continued with another. */
  readonly created: Created<unknown>;
  /** In order. */
  readonly tags: readonly string[];
  readonly leaseUntil: number;
  readonly holder: Holder;
  /** The code version of the lock before this one; null when there was none, or none of them had any. */
  readonly previousCodeVersion: string | null;
  /** Attempts that failed before this one. */
  readonly failures: number;
  /** Workers that died in a row while they ran it, without progress in between. */
  readonly deaths: number;
  /** Why it is to end, if it is: its code is told, cleans up and ends it. */
  readonly cancellation: CancellationView | null;
  /**
   * How often it was started anew under its id. Join sets of later runs are
   * named by it: the ids of children and delays are used once.
   */
  readonly continuations: number;
  /** The version of the event that gave its input: history begins after it. */
  readonly historyFrom: number;
  /** Responses up to this number belong to earlier runs. */
  readonly responsesFrom: number;
  /**
   * Signals that came before `responsesFrom` and that no run under the id has
   * read: they are its own, and come before its responses. When there are
   * more, read on with `responses(id, { unread: true, from })`.
   */
  readonly unreadSignals: readonly LoggedResponse<unknown>[];
  readonly hasMoreUnreadSignals: boolean;
  /**
   * The first history events and responses: at most 200 of each, and 1 MiB of
   * values, inputs included, for all that one call locks. When there may be more, read on from
   * `historyUpTo` and from the last response; there need not be any.
   */
  readonly history: readonly LoggedEvent<unknown>[];
  readonly hasMoreHistory: boolean;
  /** The version up to which the log was read for `history`. */
  readonly historyUpTo: number;
  readonly responses: readonly LoggedResponse<unknown>[];
  readonly hasMoreResponses: boolean;
}

/** The lock that a worker has, or is about to get. */
type Held = Pick<LockedExecution, "holder" | "leaseUntil" | "previousCodeVersion">;

/** An execution as a worker would be given it, without being locked: who has it, if anybody does. */
export interface LoadedExecution extends Omit<LockedExecution, "holder" | "leaseUntil"> {
  /** Who locked it last. */
  readonly holder: Holder | null;
  readonly leaseUntil: number | null;
}

/** What the next lock of an execution in this state is told. */
export function previousCodeVersion({ retry, codeVersion }: ExecutionState): string | null {
  // Terms come with the first lock; a version may have come with the creation.
  return retry === null ? null : codeVersion;
}

/**
 * Reads what a worker needs of an execution whose lock is, or is going to be,
 * its event of this version. Values are read in the transaction that locks:
 * nobody comes to hold what cannot be read.
 *
 * @throws HoldfastError `CORRUPT_ROW`, `VALUE_MALFORMED`, `PAYLOAD_CODEC_FAILED`
 */
export function* loadLocked(
  context: ExecutionContext,
  record: ExecutionRecord,
  version: number,
  held: Held,
  inputs: LockedInputs | undefined,
  budget: ReadBudget,
): Tx<LockedExecution> {
  const loaded = yield* load(context, record, version, inputs, budget);
  return { ...loaded, ...held, nextVersion: version + 1 };
}

/** What nothing has happened to but its lock, which is event 1: nothing is read. */
export function newLocked(
  key: number,
  { id, at, created }: NewExecution,
  { holder, leaseUntil }: Pick<Held, "holder" | "leaseUntil">,
  input: unknown,
): LockedExecution {
  return {
    id,
    key,
    role: created.role,
    function: created.function,
    nextVersion: 2,
    input,
    inputHash: created.inputHash,
    startedAt: at,
    seed: runSeed(id, 0),
    created: { ...created, input },
    tags: created.tags,
    leaseUntil,
    holder,
    previousCodeVersion: null,
    failures: 0,
    deaths: 0,
    cancellation: null,
    continuations: 0,
    historyFrom: 0,
    responsesFrom: 0,
    unreadSignals: [],
    hasMoreUnreadSignals: false,
    history: [],
    hasMoreHistory: false,
    historyUpTo: 1,
    responses: [],
    hasMoreResponses: false,
  };
}

/** What a worker would be given, without the lock, up to its last event. */
export function* loadUnlocked(
  context: ExecutionContext,
  record: ExecutionRecord,
  inputs: LockedInputs | undefined,
  budget: ReadBudget,
): Tx<LoadedExecution> {
  const { state } = record;
  const { pending, version } = state;
  const isFinished = pending.kind === "finished";
  return {
    ...(yield* load(context, record, version, inputs, budget)),
    nextVersion: isFinished ? version : version + 1,
    holder: lastHolder(pending),
    leaseUntil: isFinished ? null : pending.leaseUntil,
    previousCodeVersion: previousCodeVersion(state),
  };
}

/** What a lock has no part in. The log is read, or is going to be, up to `version`. */
function* load(
  context: ExecutionContext,
  record: ExecutionRecord,
  version: number,
  inputs: LockedInputs | undefined,
  budget: ReadBudget,
): Tx<Omit<LockedExecution, keyof Held | "nextVersion">> {
  const { id, key, state } = record;
  if (inputs === undefined) throw corruptStart(id);
  const unread =
    state.responsesFrom > 0
      ? yield* unreadPage(key, state.responsesFrom, budget)
      : { items: [], hasMore: false };
  const history =
    state.version > state.historyFrom
      ? yield* historyPage(key, state.historyFrom, state.version, budget)
      : { items: [], hasMore: false, upTo: 0 };
  const responses =
    state.responses > state.responsesFrom
      ? yield* responsePage(key, state.responsesFrom, state.responses, budget)
      : { items: [], hasMore: false };
  const { values } = context;
  return {
    id,
    key,
    role: state.role,
    function: record.function,
    ...decodedInputs(context, id, inputs),
    startedAt: inputs.startedAt,
    seed: runSeed(inputs.created.forkedFrom?.original.execution ?? id, state.continuations),
    tags: inputs.created.tags,
    failures: state.failures,
    deaths: state.deaths,
    cancellation: yield* cancellationOf(record),
    continuations: state.continuations,
    historyFrom: state.historyFrom,
    responsesFrom: state.responsesFrom,
    unreadSignals: unread.items.map((logged) => values.readResponse(logged)),
    hasMoreUnreadSignals: unread.hasMore,
    history: history.items.map((logged) => values.readEvent(logged)),
    hasMoreHistory: history.hasMore,
    historyUpTo: history.hasMore ? history.upTo : version,
    responses: responses.items.map((logged) => values.readResponse(logged)),
    hasMoreResponses: responses.hasMore,
  };
}

/**
 * With the input verified: an execution must not be run with another input
 * than it was given. A hash takes 2 µs, most of which is saved by reading the
 * input once; together a lock of a hundred costs 1 % more.
 */
export function decodedInputs(
  { values, hashOf }: ExecutionContext,
  id: ExecutionId,
  { created, start }: LockedInputs,
): Pick<LockedExecution, "input" | "inputHash" | "created"> {
  const input = values.readValue(start.input);
  if (hashOf(input) !== start.inputHash)
    throw corruptRow("holdfast_execution_event", id, "holds an input that has another hash");
  const isFirst = created.input === start.input;
  return {
    input,
    inputHash: start.inputHash,
    created: {
      ...created,
      input: isFirst ? input : values.readValue(created.input),
    },
  };
}

/** @throws HoldfastError `CORRUPT_ROW` */
export function* readCreatedEvent(id: ExecutionId, execution: number): Tx<Created> {
  const created = (yield* eventAt(execution, 0))?.event;
  if (created?.kind !== "created") throw corruptStart(id);
  return created;
}

/** The same for several, by key and with one statement; what cannot be read is missing. */
export function* readCreatedEvents(
  executions: readonly Pick<ExecutionRecord, "key">[],
): Tx<ReadonlyMap<number, Created>> {
  const readable = new Map<number, Created>();
  if (executions.length === 0) return readable;
  const found = yield* rows<EventRow & { readonly execution: number }>(sql`
    SELECT execution, ${eventColumns} FROM holdfast_execution_event
    WHERE execution IN ${integersOf(executions.map(({ key }) => key))} AND version = 0`);
  for (const logged of found) {
    const event = undamaged(() => eventOf(logged).event);
    if (event?.kind === "created") readable.set(logged.execution, event);
  }
  return readable;
}

function corruptStart(id: ExecutionId): HoldfastError {
  return corruptRow(
    "holdfast_execution_event",
    id,
    "stands where the log of its execution should begin with the creation",
  );
}
