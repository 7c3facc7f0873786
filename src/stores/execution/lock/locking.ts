import type { Duration } from "../../../model/durations.ts";
import type {
  Created,
  Holder,
  LoggedEvent,
  LoggedResponse,
} from "../../../model/execution-event.ts";
import { parseExecutionId } from "../../../model/execution-id.ts";
import type { ExecutionId } from "../../../model/execution-id.ts";
import { parseFunctionName } from "../../../model/function-name.ts";
import { parseExecutorId, parseRunId } from "../../../model/prefixed-id.ts";
import type { OwnerId } from "../../../model/prefixed-id.ts";
import type { RetryPolicy } from "../../../model/retry-policy.ts";
import { instantAfter } from "../../../model/schedule.ts";
import type { WaitOptions } from "../../../sql/database.ts";
import type { KeyWalks } from "./candidates.ts";
import { checkedRetry, checkedVersion } from "../checks.ts";
import type { FunctionLimits } from "./places.ts";
import { newExecution } from "../log/new-execution.ts";
import type { CreateOptions } from "../log/new-execution.ts";
import type { CreateOutcome } from "../log/create.ts";
import type { Damaged } from "../../damage.ts";
import type { Surroundings } from "../context.ts";
import { appendEvents } from "../log/append.ts";
import { corruptRow } from "../../../model/corrupt-row.ts";
import { checkedCount, checkedText } from "../../../model/shape.ts";
import type { AppendOutcome } from "../log/append.ts";
import { createAndLock, extendLock, lockExecution } from "./lock.ts";
import type { Extended, LockedExecution, LockTerms } from "./lock.ts";
import { lockPending } from "./lock-pending.ts";
import type { ServedFunction } from "./lock-pending.ts";

/** A locked execution with its values read. */
export interface Locked extends Omit<
  LockedExecution,
  "input" | "created" | "history" | "responses"
> {
  readonly input: unknown;
  /** Its input is the very same value, unless the execution was continued with another. */
  readonly created: Created<unknown>;
  readonly history: readonly LoggedEvent<unknown>[];
  readonly responses: readonly LoggedResponse<unknown>[];
}

export interface LockOptions extends WaitOptions {
  /** Who locks: an executor, and this round of it. */
  readonly holder: Pick<Holder, "executor" | "run">;
  /** How long, from now: a lease that must be extended by then. */
  readonly lease: Duration;
  /** Unless told, activities are retried 5 times and workflows for ever. */
  readonly retry?: RetryPolicy;
  readonly codeVersion?: string;
}

export interface LockPendingOptions extends LockOptions {
  /** The functions a worker serves, with their limits if they have any. */
  readonly functions: readonly (
    | string
    | (FunctionLimits & { readonly name: string; readonly retry?: RetryPolicy })
  )[];
  /** At most so many: 1 to 100. */
  readonly limit: number;
}

/** Taking executions, keeping them and giving them back. */
export interface ExecutionLocks {
  /**
   * Locks what is due, longest due first. What cannot be read is left alone
   * and named. Repeated by the same executor and run it gives others, not
   * those again: what an answer that was lost had locked comes back when its
   * lease has ended.
   *
   * One call looks past at most 1,000 rows that cannot be read or that others
   * are locking, and, with a limit per key, past 1,000 that wait for a full
   * one. Behind those it still finds what has no key, and one of each of the
   * next 200 keys, going on with every call where the one before stopped: a
   * free key among n waiting ones is found within n / 200 calls.
   */
  lockPending(options: LockPendingOptions): Promise<{
    readonly locked: readonly Locked[];
    readonly damaged: readonly Damaged[];
    /** True when a limit of its function or key kept something due from being locked. */
    readonly isLimited: boolean;
  }>;
  /**
   * Locks one execution, whatever the limits of its function: those are
   * `lockPending`'s alone. By who holds it already the lock is extended.
   * @throws HoldfastError `LOCK_HELD`, `LOCK_NOT_DUE`, `LOCK_BLOCKED`, `LOCK_EXPIRY_INVALID`, `VERSION_CONFLICT` …
   */
  lock(id: string, version: number, options: LockOptions): Promise<Locked>;
  /**
   * Makes one's own lock end later, also when it has just ended and nobody
   * has taken the execution. The retry policy stays unless one is given.
   * @throws HoldfastError `LOCK_LOST`, and those of `lock`.
   */
  extend(id: string, version: number, options: LockOptions): Promise<Extended>;
  /**
   * Creates an execution and locks it in one step, whatever the limits of its
   * function. One that was there before is not locked, unless the same
   * executor and run hold it: then the call was repeated, and is given the
   * lock as it stands.
   */
  createLocked(
    execution: CreateOptions,
    options: LockOptions,
  ): Promise<
    CreateOutcome & { readonly id: ExecutionId; readonly locked?: Locked }
  >;
  /** Gives an execution back without counting a failure; due again at once, or after a time. */
  unlock(
    id: string,
    version: number,
    options: WaitOptions & {
      readonly holder: Pick<Holder, "executor" | "run">;
      readonly reason: string;
      readonly after?: Duration;
    },
  ): Promise<AppendOutcome>;
}

export function executionLocks(around: Surroundings): ExecutionLocks {
  const { database, clock } = around;
  return {
    ...pendingLocks(around),
    async lock(id, version, options) {
      const read = new Map<number, Locked>();
      const locked = await database.write(
        lockExecution,
        {
          ...lockTerms(around, options, clock.now(), read),
          id: parseExecutionId(id),
          version: checkedVersion(version),
        },
        waitOf(options),
      );
      return readOf(read, locked.key);
    },
    async extend(id, version, options) {
      return database.write(
        extendLock,
        {
          ...lockTerms(around, options, clock.now()),
          id: parseExecutionId(id),
          version: checkedVersion(version),
        },
        waitOf(options),
      );
    },
    async createLocked(given, options) {
      const at = clock.now();
      const execution = newExecution(around, given, at);
      const read = new Map<number, Locked>();
      const { locked, ...outcome } = await database.write(
        createAndLock,
        { execution, lock: lockTerms(around, options, at, read) },
        waitOf(options),
      );
      return {
        ...outcome,
        id: execution.id,
        ...(locked && { locked: readOf(read, locked.key) }),
      };
    },
    async unlock(id, version, { holder, reason, after, ...wait }) {
      const at = clock.now();
      const dueAt =
        after === undefined ? at : instantAfter(at, after, "the time to wait");
      return database.write(
        appendEvents,
        {
          id: parseExecutionId(id),
          version: checkedVersion(version),
          at,
          events: [{ kind: "unlocked", dueAt, reason }],
          fence: holder,
        },
        wait,
      );
    },
  };
}

function pendingLocks(
  around: Surroundings,
): Pick<ExecutionLocks, "lockPending"> {
  const { database, clock } = around;
  // Only a place to go on from: without it some keys would have to wait longer.
  let walkAfter: KeyWalks = new Map();
  return {
    async lockPending(options) {
      const at = clock.now();
      const read = new Map<number, Locked>();
      const { locked, damaged, isLimited, walked } = await database.write(
        lockPending,
        {
          ...lockTerms(around, options, at, read),
          functions: options.functions.map(servedFunction),
          dueBy: at,
          limit: checkedCount("The limit", options.limit, { min: 1, max: 100 }),
          walkAfter,
        },
        waitOf(options),
      );
      walkAfter = new Map([...walkAfter, ...walked]);
      return {
        locked: locked.map(({ key }) => readOf(read, key)),
        damaged,
        isLimited,
      };
    },
  };
}

/** @throws HoldfastError `NAME_INVALID`, `OPTION_INVALID` */
export function servedFunction(
  given: LockPendingOptions["functions"][number],
): ServedFunction {
  if (typeof given === "string") return { name: parseFunctionName(given) };
  const { name, concurrencyMax, perKeyMax, retry } = given;
  const range = { min: 0, max: Number.MAX_SAFE_INTEGER };
  return {
    name: parseFunctionName(name),
    ...(retry && { retry: checkedRetry(retry) }),
    ...(concurrencyMax !== undefined && {
      concurrencyMax: checkedCount("concurrencyMax", concurrencyMax, range),
    }),
    ...(perKeyMax !== undefined && {
      perKeyMax: checkedCount("perKeyMax", perKeyMax, range),
    }),
  };
}

/**
 * Values are read in the transaction that locks, into `read`: nobody comes to
 * hold what he cannot read.
 */
function lockTerms(
  around: Surroundings,
  options: LockOptions,
  at: number,
  read?: Map<number, Locked>,
): LockTerms {
  const executor = parseExecutorId(options.holder.executor);
  const run = parseRunId(options.holder.run);
  const owner: OwnerId = around.database.owner;
  return {
    at,
    holder: { executor, run, owner },
    leaseUntil: instantAfter(at, options.lease, "a lease"),
    ...(options.retry && { retry: checkedRetry(options.retry) }),
    codeVersion:
      options.codeVersion === undefined
        ? null
        : checkedText("A code version", options.codeVersion),
    ...(read && {
      check: (execution) =>
        void read.set(execution.key, readLocked(around, execution)),
    }),
  };
}

function waitOf({ signal, timeout }: WaitOptions): WaitOptions {
  return { signal, timeout };
}

function readOf(read: ReadonlyMap<number, Locked>, key: number): Locked {
  const locked = read.get(key);
  if (locked === undefined)
    throw new Error("It was locked without being read.");
  return locked;
}

/**
 * With the input verified: whoever runs an execution must not do so with
 * another input than it was given. A hash takes 2 µs, most of which is saved by
 * reading the input once; together a lock of a hundred costs 1 % more.
 *
 * @throws HoldfastError `CORRUPT_ROW`
 */
function readLocked(
  { codec, hashOf }: Surroundings,
  locked: LockedExecution,
): Locked {
  const { created, input: stored } = locked;
  const input = codec.readValue(stored);
  if (hashOf(input) !== locked.inputHash)
    throw corruptRow(
      "holdfast_execution_event",
      locked.id,
      "holds an input that has another hash",
    );
  const isFirst = created.input === stored;
  return {
    ...locked,
    created: {
      ...created,
      input: isFirst ? input : codec.readValue(created.input),
    },
    input,
    history: locked.history.map((logged) => codec.readEvent(logged)),
    responses: locked.responses.map((logged) => codec.readResponse(logged)),
  };
}
