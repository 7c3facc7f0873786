import type { Encoded } from "../../../model/encoded.ts";
import { HoldfastError } from "../../../model/errors.ts";
import type {
  Created,
  ExecutionEvent,
  ExecutionRole,
  Holder,
  LoggedEvent,
  LoggedResponse,
} from "../../../model/execution-event.ts";
import { lockLost } from "../../../model/execution-errors.ts";
import type { ExecutionId } from "../../../model/execution-id.ts";
import { canAppendLock } from "../../../model/execution-lock.ts";
import { isSameRun, lastHolder } from "../../../model/execution-state.ts";
import type { FunctionName } from "../../../model/function-name.ts";
import { retryPolicyFor } from "../../../model/retry-policy.ts";
import type { RetryPolicy } from "../../../model/retry-policy.ts";
import { integersOf } from "../../../sql/dialect.ts";
import { rows, plainOperation } from "../../../sql/operation.ts";
import type { Operation, Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { assertNext } from "../log/append.ts";
import { appendTo } from "../log/append-to.ts";
import { createExecution } from "../log/create.ts";
import type { CreateOutcome, NewExecution } from "../log/create.ts";
import { undamaged } from "../../damage.ts";
import { eventAt, eventColumns, eventOf } from "../event-row.ts";
import type { EventRow } from "../event-row.ts";
import { ReadBudget, historyPage, responsePage } from "./history.ts";
import { lockedRecord } from "../state-row.ts";
import type { ExecutionRecord } from "../state-row.ts";

/** Who locks, until when, and how failures of what is locked are retried. */
export interface LockTerms {
  readonly at: number;
  readonly holder: Holder;
  readonly leaseUntil: number;
  /** What its role gets unless told. */
  readonly retry?: RetryPolicy;
  readonly codeVersion: string | null;
  /** Called in the transaction with what is being locked: when it throws, nothing is. */
  readonly check?: (execution: LockedExecution) => void;
}

/** What a worker needs to run an execution. */
export interface LockedExecution {
  readonly id: ExecutionId;
  readonly key: number;
  readonly role: ExecutionRole;
  readonly function: FunctionName;
  readonly nextVersion: number;
  readonly input: Encoded;
  /** What the input was hashed to when it was given. */
  readonly inputHash: string;
  readonly created: Created;
  readonly leaseUntil: number;
  readonly holder: Holder;
  /** Attempts that failed before this one. */
  readonly failures: number;
  /**
   * How often it was started anew under its id. Join sets of later runs are
   * named by it: the ids of children and delays are used once.
   */
  readonly continuations: number;
  /** Responses up to this number belong to earlier runs. */
  readonly responsesFrom: number;
  /**
   * The first history events and responses: at most 200 of each, and 1 MiB of
   * values for all that one call locks. When there may be more, read on from
   * `historyUpTo` and from the last response; there need not be any.
   */
  readonly history: readonly LoggedEvent[];
  readonly hasMoreHistory: boolean;
  /** The version up to which the log was read for `history`. */
  readonly historyUpTo: number;
  readonly responses: readonly LoggedResponse[];
  readonly hasMoreResponses: boolean;
}

type LockedEvent = Extract<ExecutionEvent, { readonly kind: "locked" }>;

export interface LockOne extends LockTerms {
  readonly id: ExecutionId;
  readonly version: number;
}

/** A lock of one's own that now ends later: what is known of the execution stays. */
export interface Extended {
  readonly nextVersion: number;
}

/**
 * Locks an execution that is due. By who holds it already the lock is
 * extended, and the answer is the same.
 *
 * @throws HoldfastError `EXECUTION_NOT_FOUND`, `VERSION_CONFLICT`, and those of `canAppendLock`.
 */
export const lockExecution: Operation<LockOne, LockedExecution> =
  plainOperation("lockExecution", {
    key: (input: LockOne) => input.id,
    *one(input) {
      const record = yield* lockedRecord(input.id);
      const kind = canAppendLock(input.id, record.state, input);
      assertNext(record, input.version);
      return yield* lockAndLoad(
        record,
        kind === "new" ? input : keepingRetry(input, record),
      );
    },
  });

/**
 * Extends the lock of the run that locked the execution last, as long as
 * nobody has changed anything since, and reads nothing of it.
 *
 * @throws HoldfastError `LOCK_LOST` when another run locked it last, `EXECUTION_NOT_FOUND`,
 *   `VERSION_CONFLICT`, and those of `canAppendLock`.
 */
export const extendLock: Operation<
  Omit<LockOne, "check">,
  Extended
> = plainOperation("extendLock", {
  key: (input: Omit<LockOne, "check">) => input.id,
  *one(input) {
    const record = yield* lockedRecord(input.id);
    canAppendLock(input.id, record.state, input);
    if (!isSameRun(lastHolder(record.state.pending), input.holder))
      throw lockLost(input.id);
    assertNext(record, input.version);
    const { version } = yield* appendTo(record, input.at, [
      lockedBy(keepingRetry(input, record), record.state.role),
    ]);
    return { nextVersion: version + 1 };
  },
});

/** Who only goes on need not say again how failures are retried. */
function keepingRetry<T extends LockTerms>(
  terms: T,
  { state }: ExecutionRecord,
): T {
  const retry = terms.retry ?? state.retry;
  return retry === null ? terms : { ...terms, retry };
}

export interface CreateAndLock {
  readonly execution: NewExecution;
  readonly lock: LockTerms;
}

/**
 * Creates an execution and locks it for a worker of this process in one
 * transaction. One that was there before is not locked; but the run that
 * holds it, having asked before without hearing the answer, is given its lock
 * as it stands.
 */
export const createAndLock: Operation<
  CreateAndLock,
  CreateOutcome & { readonly locked?: LockedExecution }
> = plainOperation("createAndLock", {
  key: (input: CreateAndLock) => input.execution.id,
  *one({ execution, lock }) {
    const outcome = yield* createExecution(execution);
    const record = yield* lockedRecord(execution.id);
    const { pending, version } = record.state;
    if (!outcome.existed) {
      canAppendLock(execution.id, record.state, lock);
      const locked = yield* lockAndLoad(record, lock);
      return { ...outcome, nextVersion: locked.nextVersion, locked };
    }
    if (pending.kind !== "locked" || !isSameRun(pending.holder, lock.holder))
      return outcome;
    const created = yield* readCreatedEvent(record.id, record.key);
    const held = { ...lock, ...pending };
    return {
      ...outcome,
      nextVersion: version + 1,
      locked: yield* loadLocked(record, version, held, created),
    };
  },
});

export function lockedBy(terms: LockTerms, role: ExecutionRole): LockedEvent {
  const { holder, leaseUntil, codeVersion } = terms;
  const retry = terms.retry ?? retryPolicyFor(role);
  return { kind: "locked", holder, leaseUntil, retry, codeVersion };
}

function* lockAndLoad(
  record: ExecutionRecord,
  terms: LockTerms,
): Tx<LockedExecution> {
  const { version } = yield* appendTo(record, terms.at, [
    lockedBy(terms, record.state.role),
  ]);
  const created = yield* readCreatedEvent(record.id, record.key);
  return yield* loadLocked(record, version, terms, created);
}

/** Reads what a worker needs of an execution whose lock is, or is going to be, its event of this version. */
export function* loadLocked(
  record: ExecutionRecord,
  version: number,
  { holder, leaseUntil, check }: LockTerms,
  created: Created | undefined,
  budget: ReadBudget = new ReadBudget(),
): Tx<LockedExecution> {
  const { id, key, state } = record;
  if (created === undefined) throw corruptStart(id);
  const start =
    state.historyFrom === 0
      ? created
      : yield* inputEvent(id, key, state.historyFrom);
  // One more event than its creation is this lock: nothing has happened yet.
  const history =
    version > 1
      ? yield* historyPage(key, state.historyFrom, state.version, budget)
      : { items: [], hasMore: false, upTo: 0 };
  const responses =
    state.responses > state.responsesFrom
      ? yield* responsePage(key, state.responsesFrom, budget)
      : { items: [], hasMore: false };
  const execution: LockedExecution = {
    id,
    key,
    role: state.role,
    function: record.function,
    nextVersion: version + 1,
    input: start.input,
    inputHash: start.inputHash,
    created,
    leaseUntil,
    holder,
    failures: state.failures,
    continuations: state.continuations,
    responsesFrom: state.responsesFrom,
    history: history.items,
    hasMoreHistory: history.hasMore,
    historyUpTo: history.hasMore ? history.upTo : version,
    responses: responses.items,
    hasMoreResponses: responses.hasMore,
  };
  check?.(execution);
  return execution;
}

/** @throws HoldfastError `CORRUPT_ROW` */
export function* readCreatedEvent(
  id: ExecutionId,
  execution: number,
): Tx<Created> {
  const created = yield* inputEvent(id, execution, 0);
  if (created.kind !== "created") throw corruptStart(id);
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

function* inputEvent(
  id: ExecutionId,
  execution: number,
  version: number,
): Tx<Extract<ExecutionEvent, { readonly kind: "created" | "continued" }>> {
  const event = (yield* eventAt(execution, version))?.event;
  if (event?.kind === "created" || event?.kind === "continued") return event;
  throw corruptStart(id);
}

function corruptStart(id: ExecutionId): HoldfastError {
  return new HoldfastError(
    "CORRUPT_ROW",
    `The log of execution ${id} does not begin with its creation. Look at it with a database shell; restore it from a backup.`,
    { table: "holdfast_execution_event", key: id },
  );
}
