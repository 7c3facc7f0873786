import { areBegunBodies } from "../../../model/execution/begun.ts";
import { corruptRow } from "../../../model/corrupt-row.ts";
import type { HoldfastError } from "../../../model/errors.ts";
import type {
  Created,
  ExecutionRole,
  Holder,
  LoggedEvent,
  LoggedResponse,
} from "../../../model/execution/event.ts";
import { isMetadata } from "../../../model/execution/metadata.ts";
import { runSeed } from "../../../model/execution/seed.ts";
import { lastHolder, type ExecutionState } from "../../../model/execution/state.ts";
import type { ExecutionId } from "../../../model/ids/execution-id.ts";
import type { FunctionName } from "../../../model/ids/function-name.ts";
import { integersOf } from "../../../sql/dialect.ts";
import { row, rows, type Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { undamaged } from "../../damage.ts";
import type { ExecutionContext } from "../context.ts";
import { deliveredResponse } from "../delivered.ts";
import { cancellationOf, type CancellationView } from "../control/cancelling.ts";
import { eventAt, eventColumns, eventOf, type EventRow } from "../event-row.ts";
import type { NewExecution } from "../log/create.ts";
import type { ExecutionRecord } from "../state-row.ts";
import { historyPage, responsePage, unreadPage, type ReadBudget } from "./history.ts";
import type { LockedInputs } from "./inputs.ts";

/** The data that a worker needs to run an execution. */
export interface LockedExecution {
  readonly id: ExecutionId;
  readonly key: number;
  readonly role: ExecutionRole;
  readonly function: FunctionName;
  readonly nextVersion: number;
  readonly input: unknown;
  /** The hash of the input at creation or continuation. */
  readonly inputHash: string;
  /** The time at which that input was given. For a copy, the time for the original. */
  readonly startedAt: number;
  /** The seed of its random numbers: the same for copies, a new one after each new start. */
  readonly seed: bigint;
  /**
   * The creation. Its input is the same object, unless the execution was continued with another.
   */
  readonly created: Created<unknown>;
  /** The tags, in order. */
  readonly tags: readonly string[];
  readonly leaseUntil: number;
  readonly holder: Holder;
  /** The code version of the previous lock; null when there was none, or no lock had any. */
  readonly previousCodeVersion: string | null;
  /**
   * The number of this attempt of an activity, from 1 on. Attempts that ended with the death of a
   * worker count.
   */
  readonly attempt: number;
  /**
   * True for an activity that was locked before without an end of that attempt: its process died,
   * its lock expired, or it was released.
   */
  readonly isRepeat: boolean;
  /** The number of attempts that used up a retry. */
  readonly failures: number;
  /** The number of workers that died in a row while they ran it, without progress in between. */
  readonly deaths: number;
  /** The number of those workers that ran nothing else. */
  readonly aloneDeaths: number;
  /**
   * True if the caller must run nothing beside it: it is a suspect (`suspects` of `lockPending`).
   */
  readonly isAlone: boolean;
  /** The reason for its cancellation, if any: its code is notified, cleans up and ends it. */
  readonly cancellation: CancellationView | null;
  /**
   * The number of new starts under its id. Join sets of later runs include the
   * number in their names, since ids of children and delays are used once.
   */
  readonly continuations: number;
  /** The version of the event that gave its input: its history begins after it. */
  readonly historyFrom: number;
  /** Responses up to this number belong to earlier runs. */
  readonly responsesFrom: number;
  /**
   * Signals that arrived before `responsesFrom` and that no run under the id has read. They belong
   * to this run, and come before its responses. If more follow, continue with `responses(id, {
   * unread: true, from })`.
   */
  readonly unreadSignals: readonly LoggedResponse<unknown>[];
  readonly hasMoreUnreadSignals: boolean;
  /**
   * The first history events and responses: at most 200 of each. All runs that one call locks share
   * 1 MiB of values, including inputs. More may follow: continue from `historyUpTo` and from the
   * last response. Those pages may be empty.
   */
  readonly history: readonly LoggedEvent<unknown>[];
  readonly hasMoreHistory: boolean;
  /** The version up to which the log was read for `history`. */
  readonly historyUpTo: number;
  readonly responses: readonly LoggedResponse<unknown>[];
  readonly hasMoreResponses: boolean;
}

/** The lock that a worker has, or will get. */
type Held = Pick<LockedExecution, "holder" | "leaseUntil" | "isAlone" | "previousCodeVersion">;

/** An execution as a worker would receive it, without being locked, and its holder, if any. */
export interface LoadedExecution extends Omit<LockedExecution, "holder" | "leaseUntil"> {
  /** The last holder. */
  readonly holder: Holder | null;
  readonly leaseUntil: number | null;
}

/** The previous code version that the next lock of an execution in this state reports. */
export function previousCodeVersion({ retry, codeVersion }: ExecutionState): string | null {
  // Retry terms come with the first lock; a code version may come with the creation.
  return retry === null ? null : codeVersion;
}

/**
 * Reads the data that a worker needs of an execution whose lock is, or will be, its event of this
 * version. Values are read in the locking transaction, so that no worker holds unreadable data.
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
  const versions = { version, lockVersion: version };
  const loaded = yield* load(context, record, versions, inputs, budget);
  return { ...loaded, ...held, nextVersion: version + 1 };
}

/**
 * Builds the result for a new execution whose only other event is its lock, event 1. Nothing is
 * read.
 */
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
    attempt: 1,
    isRepeat: false,
    failures: 0,
    deaths: 0,
    aloneDeaths: 0,
    isAlone: false,
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

/** The data that a worker would receive, without the lock, up to the last event. */
export function* loadUnlocked(
  context: ExecutionContext,
  record: ExecutionRecord,
  inputs: LockedInputs | undefined,
  budget: ReadBudget,
): Tx<LoadedExecution> {
  const { state } = record;
  const { pending, version } = state;
  const isFinished = pending.kind === "finished";
  const lockVersion = pending.kind === "locked" ? pending.lockVersion : version + 1;
  return {
    ...(yield* load(context, record, { version, lockVersion }, inputs, budget)),
    nextVersion: isFinished ? version : version + 1,
    holder: lastHolder(pending),
    leaseUntil: isFinished ? null : pending.leaseUntil,
    isAlone: pending.kind === "locked" && pending.isAlone,
    previousCodeVersion: previousCodeVersion(state),
  };
}

/**
 * The data that does not depend on the lock, which is, or would be, the event `lockVersion`. The
 * log is read, now or later, up to `version`.
 */
function* load(
  context: ExecutionContext,
  record: ExecutionRecord,
  { version, lockVersion }: { readonly version: number; readonly lockVersion: number },
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
      ? yield* historyPage(record, state.historyFrom, state.version, budget)
      : { items: [], hasMore: false, upTo: 0 };
  const responses =
    state.responses > state.responsesFrom
      ? yield* responsePage(record, state.responsesFrom, state.responses, budget)
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
    ...(yield* attemptOf(record, lockVersion, inputs.created)),
    failures: state.failures,
    deaths: state.deaths,
    aloneDeaths: state.aloneDeaths,
    cancellation: yield* cancellationOf(record),
    continuations: state.continuations,
    historyFrom: state.historyFrom,
    responsesFrom: state.responsesFrom,
    unreadSignals: unread.items.map((logged) => deliveredResponse(context, id, logged)),
    hasMoreUnreadSignals: unread.hasMore,
    history: history.items.map((logged) => values.readEvent(logged)),
    hasMoreHistory: history.hasMore,
    historyUpTo: history.hasMore ? history.upTo : version,
    responses: responses.items.map((logged) => deliveredResponse(context, id, logged)),
    hasMoreResponses: responses.hasMore,
  };
}

/**
 * Counts the attempts of an activity in its log, since an attempt that ended with a death uses up
 * no retry. An earlier lock behind the last attempt that failed was interrupted. A retried activity
 * may have been interrupted before it was retried.
 */
function* attemptOf(
  { key, state: { role } }: ExecutionRecord,
  lockVersion: number,
  { begun = [] }: Pick<Created, "begun">,
): Tx<Pick<LockedExecution, "attempt" | "isRepeat">> {
  if (role !== "activity") return { attempt: 1, isRepeat: false };
  const wasBegun = begun.length > 0;
  if (lockVersion < 2) return { attempt: 1, isRepeat: wasBegun };
  const found = yield* row<{
    readonly n: number;
    readonly locked: number | null;
    readonly failed: number | null;
  }>(sql`
    SELECT COUNT(CASE WHEN kind <> 'locked' THEN 1 END) AS n,
      MAX(CASE WHEN kind = 'locked' AND version < ${lockVersion} THEN version END) AS locked,
      MAX(CASE WHEN kind = 'attemptFailed' THEN version END) AS failed
    FROM holdfast_execution_event
    WHERE execution = ${key} AND kind IN ('attemptFailed', 'attemptTimedOut', 'ownerDied', 'locked')
      AND version > COALESCE((SELECT MAX(version) FROM holdfast_execution_event
        WHERE execution = ${key} AND kind = 'forked'), 0)`);
  const { n = 0, locked = null, failed = null } = found ?? {};
  const isRepeat = failed === null ? wasBegun || locked !== null : (locked ?? 0) > failed;
  return { attempt: 1 + n, isRepeat };
}

/**
 * Decodes and verifies the input: an execution must run with the input that it was given. A hash
 * takes 2 µs, most of which is saved by reading the input once. A lock of a hundred costs 1 % more
 * in all.
 */
export function decodedInputs(
  { values }: ExecutionContext,
  id: ExecutionId,
  { created, start }: LockedInputs,
): Pick<LockedExecution, "input" | "inputHash" | "created"> {
  const input = values.readValue(start.input);
  if (!values.agrees(input, start.inputHash))
    throw corruptRow("holdfast_execution_event", id, "holds an input that does not match its hash");
  if (!isMetadata(created.metadata))
    throw corruptRow("holdfast_execution_event", id, "holds damaged metadata");
  if (created.begun !== undefined && !areBegunBodies(created.begun))
    throw corruptRow("holdfast_execution_event", id, "holds a damaged list of begun steps");
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

/** The same for several, by key and with one statement; unreadable events are missing. */
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
    "is where the log of its execution should start with the creation",
  );
}
