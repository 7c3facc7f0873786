import type { Duration } from "../../../model/time/durations.ts";
import { lockLost } from "../../../model/execution/errors.ts";
import { parseExecutionId, type ExecutionId } from "../../../model/ids/execution-id.ts";
import { canAppendLock } from "../../../model/execution/lock.ts";
import { isSameRun, lastHolder } from "../../../model/execution/state.ts";
import { instantAfter } from "../../../model/time/instants.ts";
import type { WaitOptions } from "../../../sql/database.ts";
import { storeOperation, type Tx } from "../../../sql/operation.ts";
import { optionsAndWait, type Call } from "../../method.ts";
import { checkedFence, checkedVersion, type Fence } from "../checks.ts";
import type { ExecutionContext } from "../context.ts";
import type { AppendEvents } from "../log/append.ts";
import { appendTo, type AppendOutcome } from "../log/append-to.ts";
import {
  createOrFind,
  newExecution,
  type CreatedExecution,
  type ExecutionDraft,
  type NewExecution,
} from "../log/create.ts";
import { assertAppendable } from "../log/event-check.ts";
import { assertNext } from "../log/record-check.ts";
import { lockedRecord, type ExecutionRecord } from "../state-row.ts";
import { createLockedOnPostgres } from "./create-locked.many.postgres.ts";
import { ReadBudget } from "./history.ts";
import { readInputs } from "./inputs.ts";
import { insertLocked, isSimple } from "./insert-locked.ts";
import { decodedInputs, loadLocked, previousCodeVersion, type LockedExecution } from "./locked.ts";
import {
  lockNames,
  lockTerms,
  lockedBy,
  termsNow,
  type LockOptions,
  type LockTerms,
} from "./terms.ts";

export interface LockOne extends LockTerms {
  readonly id: ExecutionId;
  readonly version: number;
}

export function givenLock(
  context: ExecutionContext,
  id: string,
  version: number,
  options: LockOptions,
): Call<LockOne> {
  const { options: given, wait } = optionsAndWait(options, lockNames);
  const input = {
    ...lockTerms(context, given, context.clock.now()),
    id: parseExecutionId(id),
    version: checkedVersion(version),
  };
  return { input, wait };
}

/**
 * Locks an execution that is due. If the caller already holds it, the lock is extended, and the
 * result is the same.
 * @throws HoldfastError `EXECUTION_NOT_FOUND`, `VERSION_CONFLICT`, and those of `canAppendLock`.
 */
export const lockExecution = storeOperation("lockExecution", {
  key: (input) => input.id,
  *one(context: ExecutionContext, asked: LockOne): Tx<LockedExecution> {
    const record = yield* lockedRecord(asked.id);
    const input = termsNow(context, asked);
    const kind = canAppendLock(input.id, record.state, input);
    assertNext(record, input.version);
    return yield* lockAndLoad(
      context,
      record,
      kind === "new" ? input : keepingRetry(input, record),
    );
  },
});

/**
 * Extends the lock of the run that locked the execution last, if nothing has changed since. It
 * reads none of the execution's history.
 * @throws HoldfastError `LOCK_LOST` when another run locked it last, `EXECUTION_NOT_FOUND`,
 *   `VERSION_CONFLICT`, and those of `canAppendLock`.
 */
export const extendLock = storeOperation("extendLock", {
  key: (input) => input.id,
  *one(context: ExecutionContext, asked: LockOne): Tx<AppendOutcome> {
    const record = yield* lockedRecord(asked.id);
    const input = termsNow(context, asked);
    canAppendLock(input.id, record.state, input);
    if (!isSameRun(lastHolder(record.state.pending), input.holder)) throw lockLost(input.id);
    assertNext(record, input.version);
    const { version } = yield* appendTo(context, record, input.at, [
      lockedBy(keepingRetry(input, record), record.state.role),
    ]);
    return { nextVersion: version + 1, at: input.at };
  },
});

/** Keeps the stored retry policy: a worker that continues need not pass it again. */
function keepingRetry<T extends LockTerms>(terms: T, { state }: ExecutionRecord): T {
  const retry = terms.retry ?? state.retry;
  return retry === null ? terms : { ...terms, retry };
}

export interface CreateAndLock {
  readonly execution: NewExecution;
  readonly lock: LockTerms;
  /**
   * The input for the worker, read back from its stored form, so that no worker holds an unreadable
   * input.
   */
  readonly input: unknown;
}

export function givenCreateLocked(
  context: ExecutionContext,
  draft: ExecutionDraft,
  options: LockOptions,
): Call<CreateAndLock> {
  const { options: given, wait } = optionsAndWait(options, lockNames);
  const at = context.clock.now();
  const execution = newExecution(context, draft, at);
  const { id, created } = execution;
  const inputs = { created, start: created, startedAt: at };
  const { input } = decodedInputs(context, id, inputs);
  const lock = lockTerms(context, given, at);
  return { input: { execution, lock, input }, wait };
}

export interface CreatedLocked extends CreatedExecution {
  /** Missing if the execution existed before and is not held by this run. */
  readonly locked?: LockedExecution;
}

/**
 * Creates an execution and locks it for a worker of this process in one transaction. An existing
 * execution is not locked. But if this run already holds it, because an earlier response was lost,
 * the existing lock is returned.
 */
export const createAndLock = storeOperation("createAndLock", {
  key: (input) => input.execution.id,
  *one(context: ExecutionContext, input: CreateAndLock): Tx<CreatedLocked> {
    const { execution, lock: asked } = input;
    const { id } = execution;
    const terms = termsNow(context, asked);
    const lean = yield* insertLocked(input, terms.at, lockedBy(terms, execution.created.role));
    if (lean !== undefined) {
      const { key, nextVersion } = lean;
      return { id, key, nextVersion, existed: false, locked: lean };
    }
    const found = yield* createOrFind(execution, { isLocked: true });
    const outcome = { ...found, id };
    const locked = outcome.existed
      ? yield* heldBefore(context, id, asked)
      : yield* lockNew(context, id, asked);
    return locked === undefined ? outcome : { ...outcome, nextVersion: locked.nextVersion, locked };
  },
  many: createLockedOnPostgres,
  manyTakes: ({ execution, lock }) => isSimple(execution, lock),
});

/** Locks an execution that the transaction has created. @throws HoldfastError those of `canAppendLock` */
export function* lockNew(
  context: ExecutionContext,
  id: ExecutionId,
  asked: LockTerms,
): Tx<LockedExecution> {
  const record = yield* lockedRecord(id);
  const lock = termsNow(context, asked);
  canAppendLock(id, record.state, lock);
  return yield* lockAndLoad(context, record, lock);
}

/** The existing lock of an execution created earlier, if this run holds it. */
export function* heldBefore(
  context: ExecutionContext,
  id: ExecutionId,
  { holder }: LockTerms,
): Tx<LockedExecution | undefined> {
  const record = yield* lockedRecord(id);
  const { pending, version } = record.state;
  if (pending.kind !== "locked" || !isSameRun(pending.holder, holder)) return undefined;
  // A lock at version 1 is the first: no lock came before it.
  const previous = pending.lockVersion === 1 ? null : undefined;
  return yield* loadOne(context, record, version, pending, previous);
}

function* lockAndLoad(
  context: ExecutionContext,
  record: ExecutionRecord,
  terms: LockTerms,
): Tx<LockedExecution> {
  const { version } = yield* appendTo(context, record, terms.at, [
    lockedBy(terms, record.state.role),
  ]);
  return yield* loadOne(context, record, version, terms);
}

function* loadOne(
  context: ExecutionContext,
  record: ExecutionRecord,
  version: number,
  {
    holder,
    leaseUntil,
    isAlone = false,
  }: Pick<LockTerms, "holder" | "leaseUntil"> & { readonly isAlone?: boolean },
  previous = previousCodeVersion(record.state),
): Tx<LockedExecution> {
  const budget = new ReadBudget();
  const { inputs } = yield* readInputs([record], budget);
  const own = inputs.get(record.key);
  const held = { holder, leaseUntil, isAlone, previousCodeVersion: previous };
  return yield* loadLocked(context, record, version, held, own, budget);
}

export interface UnlockOptions extends WaitOptions {
  /** The run that locked the execution and now releases it. */
  readonly holder: Fence;
  /** A text for people, kept in the log. */
  readonly reason: string;
  /** The time until it is due again; defaults to at once. */
  readonly after?: Duration;
}

/** Builds an append of the one event that ends a lock. */
export function givenUnlock(
  { clock }: ExecutionContext,
  id: string,
  version: number,
  options: UnlockOptions,
): Call<AppendEvents> {
  const { options: given, wait } = optionsAndWait(options, ["holder", "reason", "after"]);
  const { holder, reason, after = 0 } = given;
  const at = clock.now();
  const dueAt = instantAfter(at, after, "the time to wait");
  const input: AppendEvents = {
    id: parseExecutionId(id),
    version: checkedVersion(version),
    at,
    events: [{ kind: "unlocked", dueAt, reason }],
    fence: checkedFence("holder", holder),
  };
  assertAppendable(input);
  return { input, wait };
}
