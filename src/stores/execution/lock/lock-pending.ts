import { isHoldfastError, type ErrorCode } from "../../../model/errors.ts";
import { assertLeaseAhead, isCompatible } from "../../../model/execution/lock.ts";
import type { FunctionName } from "../../../model/ids/function-name.ts";
import { checkedCount } from "../../../model/shape.ts";
import { integersOf, skipLocked } from "../../../sql/dialect.ts";
import {
  afterwards,
  announce,
  rows,
  run,
  storeOperation,
  type StoreOperation,
  type Tx,
} from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { eventColumnsOf } from "../event-row.ts";
import { candidatesOf, type Candidate } from "./candidates.ts";
import { undamaged, type Damaged } from "../../damage.ts";
import { ReadBudget } from "./history.ts";
import {
  lockedBy,
  lockNames,
  lockTerms,
  termsNow,
  type LockedEvent,
  type LockOptions,
  type LockTerms,
} from "./terms.ts";
import { readInputs, type LockedInputs } from "./inputs.ts";
import { lanesFor } from "./lanes.ts";
import { loadLocked, previousCodeVersion, type LockedExecution } from "./locked.ts";
import {
  holdFunctions,
  holdingsOf,
  servedFunctions,
  type FunctionDraft,
  type ServedFunction,
} from "./places.ts";
import { optionsAndWait, type Call } from "../../method.ts";
import type { ExecutionContext } from "../context.ts";
import { recordOf, stateColumns, type ExecutionRecord, type StateRow } from "../state-row.ts";
import { timerSet } from "../topics.ts";

export interface LockPendingOptions extends LockOptions {
  /** The functions a worker serves, with their limits if they have any. */
  readonly functions: readonly (string | FunctionDraft)[];
  /** How many at most: 1 to 100. */
  readonly limit: number;
}

export interface LockPending extends LockTerms {
  /** Each once. */
  readonly functions: readonly ServedFunction[];
  readonly limit: number;
}

export function givenLockPending(
  context: ExecutionContext,
  options: LockPendingOptions,
): Call<LockPending> {
  const { options: given, wait } = optionsAndWait(options, [...lockNames, "functions", "limit"]);
  const input = {
    ...lockTerms(context, given, context.clock.now()),
    functions: servedFunctions(given.functions),
    limit: checkedCount("limit", given.limit, { min: 1, max: 100 }),
  };
  return { input, wait };
}

export interface LockPendingOutcome {
  readonly locked: readonly LockedExecution[];
  /** Rows that could not be read, and were left alone. */
  readonly damaged: readonly Damaged[];
  /** True when a limit of its function or key kept something due from being locked. */
  readonly isLimited: boolean;
}

/**
 * Selects and locks what is due: of a function the longest due first, equal
 * ones by id; functions share what is wanted, those first of which the caller
 * has less.
 *
 *   candidates        without locks, function by function from the index, merged by (rank in it, due_at, id)
 *     → lock rows     only as many as are wanted, SKIP LOCKED: what others are locking is passed over
 *     → read values   in the same transaction, 1 MiB for all: nobody holds what cannot be read,
 *                     and those whose inputs do not fit are left for the next call
 *     → replace       what was locked by others or is damaged by the next candidates, each round twice as many
 *     → write         the same lock on all with two statements
 *
 * Bounds: 1,000 rows tried in at most 8 rounds. Under a limit per key the
 * 1,000 longest due are looked at, then those without a key and one of each of
 * the next 200 keys, from where the last call stopped (`walks` of the
 * context): a free key among n is found within n / 200 calls. Functions with
 * limits are held one after the other, by name, so that two workers never
 * count at once. Evidence: 10 of 1,000,000 due take 0.75 ms, as 10 of 1,000 do
 * (`executions.lock`); plans are held by test/{sqlite,postgres}/execution-plans.
 *
 * @throws HoldfastError `LOCK_EXPIRY_INVALID`
 */
export const lockPending: StoreOperation<ExecutionContext, LockPending, LockPendingOutcome> =
  storeOperation("lockPending", {
    key: (input: LockPending) => input.holder.executor,
    *one(context: ExecutionContext, asked) {
      assertLeaseAhead(asked);
      const { functions } = asked;
      yield* holdFunctions(functions);
      const input = termsNow(context, asked);
      const { found, damaged, isLimited, walked } = yield* search(context, input);
      const records = found.map(({ record }) => record);
      for (const [body, alike] of byLock(records, functions, input))
        yield* writeLocks(alike, body, input.at);
      if (walked.size > 0)
        yield* afterwards({
          durable() {
            for (const [name, key] of walked) context.walks.set(name, key);
          },
        });
      return {
        locked: found.map(({ execution }) => execution),
        damaged: [...damaged.values()],
        isLimited,
      };
    },
  });

/** Rows that one call tries to lock or to read without success, before it gives up. */
const triedMax = 1_000;
/** Rounds in which it tries those: each twice as many as the one before. */
const roundsMax = 8;
/** Rows locked at once beyond what is wanted, when many cannot be read. */
const spareMax = 100;

interface Readable {
  readonly record: ExecutionRecord;
  readonly execution: LockedExecution;
}

interface Search {
  readonly found: Readable[];
  readonly chosen: Candidate[];
  readonly damaged: Map<number, Damaged>;
  readonly tried: Set<number>;
  readonly walked: Map<FunctionName, string>;
  readonly budget: ReadBudget;
  isLimited: boolean;
  /** True when the inputs of what is due next do not fit. */
  isFull: boolean;
}

/**
 * Locks the rows of what is to be locked and reads it before anything is
 * written. Candidates are selected without locks and then locked, no more than
 * are needed: what is kept from others here must not be left to nobody. Those
 * that somebody else has locked, or that cannot be read, are replaced by the
 * next ones.
 */
function* search(context: ExecutionContext, input: LockPending): Tx<Search> {
  const state: Search = {
    found: [],
    chosen: [],
    damaged: new Map(),
    tried: new Set(),
    walked: new Map(),
    budget: new ReadBudget(),
    isLimited: false,
    isFull: false,
  };
  const holdings = yield* holdingsOf(input.functions);
  const names = input.functions.map(({ name }) => name);
  const lanes = yield* lanesFor(names, input.codeVersion);
  for (let round = 0; round < roundsMax; round += 1) {
    const missing = input.limit - state.found.length;
    const spare = Math.min(state.damaged.size, spareMax);
    const count = Math.min((missing + spare) * 2 ** round, triedMax - state.tried.size);
    if (missing === 0 || count <= 0 || state.isFull) break;
    const { items, isLimited, walked } = yield* candidatesOf({
      functions: input.functions,
      holdings,
      chosen: state.chosen,
      dueBy: input.at,
      count,
      except: [...state.tried],
      walkAfter: context.walks,
      lanes,
    });
    state.isLimited ||= isLimited;
    for (const [name, key] of walked) state.walked.set(name, key);
    const isTried = yield* tryCandidates(context, input, items, missing + spare, state);
    if (isTried && items.length < count) break;
  }
  return state;
}

/** Locks and reads as many of these as are missing. True when there was none that it did not try. */
function* tryCandidates(
  context: ExecutionContext,
  input: LockPending,
  candidates: readonly Candidate[],
  rowsMax: number,
  state: Search,
): Tx<boolean> {
  const keys = candidates.map(({ key }) => key);
  const locked = yield* lockRows(keys, input.at, rowsMax);
  // As many rows as were asked for: those before the last were passed over; fewer: all were.
  const last = locked.length === rowsMax ? locked.at(-1)?.key : keys.at(-1);
  const tried = keys.slice(0, last === undefined ? 0 : keys.indexOf(last) + 1);
  for (const key of tried) state.tried.add(key);
  const records = soundRecords(locked, state).filter((record) =>
    isCompatible(record.state, input.codeVersion),
  );
  const { inputs, unread } = yield* readInputs(records, state.budget);
  for (const record of records) {
    if (state.found.length === input.limit) break;
    state.isFull ||= unread.has(record.key);
    if (state.isFull) break;
    const own = inputs.get(record.key);
    const execution = yield* loadUndamaged(context, record, input, own, state);
    const candidate = candidates.find(({ key }) => key === record.key);
    if (execution === undefined || candidate === undefined) continue;
    state.found.push({ record, execution });
    state.chosen.push(candidate);
  }
  return tried.length === keys.length;
}

function soundRecords(
  locked: readonly StateRow[],
  { damaged }: Search,
): readonly ExecutionRecord[] {
  return locked.flatMap((found) => {
    const record = undamaged(() => recordOf(found));
    if (record === undefined)
      damaged.set(found.key, { table: "holdfast_execution", key: found.id });
    return record ?? [];
  });
}

const unreadable: ReadonlySet<ErrorCode> = new Set([
  "CORRUPT_ROW",
  "VALUE_MALFORMED",
  "PAYLOAD_CODEC_FAILED",
]);

function* loadUndamaged(
  context: ExecutionContext,
  record: ExecutionRecord,
  terms: LockPending,
  inputs: LockedInputs | undefined,
  { budget, damaged }: Search,
): Tx<LockedExecution | undefined> {
  const version = record.state.version + 1;
  try {
    const { holder, leaseUntil } = terms;
    const previous = previousCodeVersion(record.state);
    const held = { holder, leaseUntil, previousCodeVersion: previous };
    return yield* loadLocked(context, record, version, held, inputs, budget);
  } catch (error) {
    if (!isHoldfastError(error) || !unreadable.has(error.code)) throw error;
    const table = "holdfast_execution_event";
    damaged.set(record.key, { table, key: record.id });
    return undefined;
  }
}

/** Locks the first of the rows that are still due and that nobody else has locked. */
function* lockRows(keys: readonly number[], dueBy: number, limit: number): Tx<readonly StateRow[]> {
  if (keys.length === 0) return [];
  return yield* rows<StateRow>(sql`
    SELECT ${stateColumns} FROM holdfast_execution
    WHERE key IN ${integersOf(keys)} AND state = 'pending' AND lifecycle <> 'paused' AND due_at <= ${dueBy}
    ORDER BY due_at, id LIMIT ${limit} ${skipLocked}`);
}

/** Most often one group: it takes two statements, however many are locked. */
function byLock(
  records: readonly ExecutionRecord[],
  functions: readonly ServedFunction[],
  input: LockPending,
): ReadonlyMap<LockedEvent, readonly ExecutionRecord[]> {
  const retries = new Map(functions.map(({ name, retry }) => [name, retry]));
  const events = new Map<string, LockedEvent>();
  const groups = new Map<LockedEvent, ExecutionRecord[]>();
  for (const record of records) {
    const { role } = record.state;
    const retry = retries.get(record.function) ?? input.retry;
    const name = `${role} ${JSON.stringify(retry)}`;
    let event = events.get(name);
    if (event === undefined) {
      event = lockedBy({ ...input, ...(retry && { retry }) }, role);
      events.set(name, event);
      groups.set(event, []);
    }
    groups.get(event)?.push(record);
  }
  return groups;
}

/** The same lock on all of them. */
function* writeLocks(
  records: readonly ExecutionRecord[],
  event: LockedEvent,
  at: number,
): Tx<void> {
  const { holder, leaseUntil, retry, codeVersion } = event;
  const keys = integersOf(records.map((record) => record.key));
  yield* run(sql`
    UPDATE holdfast_execution SET
      version = version + 1, state = 'locked', lifecycle = CASE WHEN lifecycle = 'parked' THEN 'active' ELSE lifecycle END,
      due_at = NULL, lease_until = ${leaseUntil}, lock_version = version + 1,
      executor = ${holder.executor}, run = ${holder.run}, owner = ${holder.owner}, seen = NULL, wake_at = NULL,
      max_retries = ${retry.maxRetries}, backoff_ms = ${retry.backoffMs}, backoff_max_ms = ${retry.backoffMaxMs},
      code_version = COALESCE(${codeVersion}, code_version)
    WHERE key IN ${keys}`);
  const { kind, call, seen, body } = eventColumnsOf(event);
  yield* run(sql`
    INSERT INTO holdfast_execution_event (execution, version, at, responses, kind, call, seen, body)
    SELECT key, version, CAST(${at} AS BIGINT), responses, CAST(${kind} AS TEXT), CAST(${call} AS BIGINT),
      CAST(${seen} AS BIGINT), CAST(${body} AS TEXT)
    FROM holdfast_execution WHERE key IN ${keys} ORDER BY key`);
  for (const { id } of records) yield* announce(timerSet, id);
}
