import { isHoldfastError, type ErrorCode, type HoldfastError } from "../../../model/errors.ts";
import { assertLeaseAhead, isCompatible } from "../../../model/execution/lock.ts";
import type { FunctionName } from "../../../model/ids/function-name.ts";
import { checkedCount } from "../../../model/shape.ts";
import { integersOf, skipLocked } from "../../../sql/dialect.ts";
import { afterwards, rows, storeOperation, type Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { longestDueFirst, type Candidate } from "./candidate.ts";
import { candidatesOf } from "./candidates.ts";
import { undamaged, type Damaged } from "../../damage.ts";
import { ReadBudget } from "./history.ts";
import { lockNames, lockTerms, termsNow, type LockOptions, type LockTerms } from "./terms.ts";
import { readInputs, type LockedInputs } from "./inputs.ts";
import { runsApart } from "./lanes.ts";
import { loadLocked, previousCodeVersion, type LockedExecution } from "./locked.ts";
import {
  holdFunctions,
  holdingsOf,
  servedFunctions,
  type FunctionDraft,
  type ServedFunction,
} from "./limits.ts";
import {
  suspectsDue,
  suspectsDueBy,
  suspectsWanted,
  type LookForSuspects,
  type SuspectsWanted,
} from "./suspects.ts";
import { byLock, writeLocks } from "./write-locks.ts";
import { optionsAndWait, type Call } from "../../method.ts";
import type { ExecutionContext } from "../context.ts";
import { appendTo } from "../log/append-to.ts";
import type { Parked } from "../timers/notes.ts";
import { recordOf, stateColumns, type ExecutionRecord, type StateRow } from "../state-row.ts";

export interface LockPendingOptions extends LockOptions {
  /** The functions a worker serves, with their limits if they have any. */
  readonly functions: readonly (string | FunctionDraft)[];
  /** The maximum number of runs to lock: 1 to 100. */
  readonly limit: number;
  /**
   * Suspects are runs that three workers in a row died of, or beside. `"alone"` locks one suspect
   * and nothing else, if one is due. It is for a caller that runs nothing, and takes nothing until
   * that run has recorded something, waits or has ended. `"overdue"`, the default, locks a suspect
   * only when it has been due for a minute. `"none"` locks none.
   */
  readonly suspects?: SuspectsWanted;
}

export interface LockPending extends LockTerms {
  /** The distinct functions. */
  readonly functions: readonly ServedFunction[];
  readonly limit: number;
  readonly suspects: SuspectsWanted;
}

export function givenLockPending(
  context: ExecutionContext,
  options: LockPendingOptions,
): Call<LockPending> {
  const { options: given, wait } = optionsAndWait(options, [
    ...lockNames,
    "functions",
    "limit",
    "suspects",
  ]);
  const input = {
    ...lockTerms(context, given, context.clock.now()),
    functions: servedFunctions(given.functions),
    limit: checkedCount("limit", given.limit, { min: 1, max: 100 }),
    suspects: suspectsWanted(given.suspects),
  };
  return { input, wait };
}

export interface LockPendingOutcome {
  /** The locked runs, each with whether a worker has had it before. */
  readonly locked: readonly (LockedExecution & { readonly hasBegun: boolean })[];
  /** Unreadable rows, which were skipped. */
  readonly damaged: readonly Damaged[];
  /** Runs parked because the caller's payload codec cannot decode their values. */
  readonly parked: readonly Parked[];
  /** True if a limit of a function or key prevented a due run from being locked. */
  readonly isLimited: boolean;
  /** True if a suspect is due and was not locked. */
  readonly hasSuspects: boolean;
}

/**
 * Selects and locks due runs. Functions share the wanted number, those with less `load` first. Of
 * every four places of a function, three go to runs that a worker has had before and one to a new
 * run, while both are due (`model/execution/place-debt.ts`). The longest due of a kind comes first,
 * equal ones by id.
 *
 *   candidates        without locks, function by function from the index, merged by (rank in it, due_at, id)
 *     → lock rows     only as many as are wanted, SKIP LOCKED: rows that others are locking are skipped
 *     → read values   in the same transaction, 1 MiB for all: no worker holds an unreadable run,
 *                     and runs whose inputs do not fit are left for the next call
 *     → replace       rows that are damaged or locked by others by the next candidates, each round twice as many
 *     → write         the same lock on all with two statements
 *
 * Bounds: 1,000 rows tried in at most 8 rounds. Under a limit per key it reads the 1,000 longest
 * due of each kind, then runs without a key and one of each of the next 200 keys, from where the
 * last call stopped (`walks` of the context): a free key among n is found within n / 200 calls.
 * Functions with limits are held one after the other, by name, so that two workers never count at
 * once. Evidence: 10 of 1,000,000 due take 0.75 ms, as 10 of 1,000 do (`executions.lock`). Plans
 * are held by test/{sqlite,postgres}/execution-plans.
 *
 * @throws HoldfastError `LOCK_EXPIRY_INVALID`
 */
export const lockPending = storeOperation("lockPending", {
  key: (input) => input.holder.executor,
  *one(context: ExecutionContext, asked: LockPending): Tx<LockPendingOutcome> {
    assertLeaseAhead(asked);
    const { functions } = asked;
    yield* holdFunctions(functions);
    const input = termsNow(context, asked);
    const searched = yield* search(context, input);
    const { found, damaged, parked, isLimited, walked, suspectsLeft } = searched;
    const records = found.map(({ record }) => record);
    const alone = found.some(({ execution }) => execution.isAlone);
    for (const [body, alike] of byLock(records, functions, alone ? { ...input, alone } : input))
      yield* writeLocks(alike, body, input.at);
    if (walked.size > 0)
      yield* afterwards({
        durable() {
          for (const [name, key] of walked) context.walks.set(name, key);
        },
      });
    const inOrder = found.toSorted((a, b) => longestDueFirst(a.candidate, b.candidate));
    return {
      locked: inOrder.map(({ candidate, execution }) => ({
        ...execution,
        hasBegun: candidate.is_begun === 1,
      })),
      damaged: [...damaged.values()],
      parked,
      isLimited,
      hasSuspects: suspectsLeft > 0,
    };
  },
});

/** The number of rows that one call tries to lock or read without success before it stops. */
const triedMax = 1_000;
/** The number of rounds in which it tries them: each twice as large as the previous one. */
const roundsMax = 8;
/** The number of rows locked beyond the wanted ones when many are unreadable. */
const spareMax = 100;

interface Readable {
  readonly candidate: Candidate;
  readonly record: ExecutionRecord;
  readonly execution: LockedExecution;
}

interface Search {
  readonly found: Readable[];
  readonly damaged: Map<number, Damaged>;
  readonly parked: Parked[];
  readonly tried: Set<number>;
  readonly walked: Map<FunctionName, string>;
  readonly budget: ReadBudget;
  isLimited: boolean;
  suspectsLeft: number;
  /** True if the inputs of the next due run do not fit. */
  isFull: boolean;
}

/**
 * Locks the rows of the candidates and reads them before anything is written. Candidates are
 * selected without locks and then locked, no more than are needed: rows that are withheld from
 * other workers here must all be used. Candidates that another worker has locked, or that are
 * unreadable, are replaced by the next ones.
 */
function* search(context: ExecutionContext, input: LockPending): Tx<Search> {
  const state: Search = {
    found: [],
    damaged: new Map(),
    parked: [],
    tried: new Set(),
    walked: new Map(),
    budget: new ReadBudget(),
    isLimited: false,
    suspectsLeft: 0,
    isFull: false,
  };
  const holdings = yield* holdingsOf(input.functions);
  const names = input.functions.map(({ name }) => name);
  const { lanes, suspects } = yield* runsApart(names, input.codeVersion);
  if (suspects.length > 0) {
    const isAlone = yield* trySuspects(context, input, { names: suspects, holdings }, state);
    if (isAlone) return state;
  }
  for (let round = 0; round < roundsMax; round += 1) {
    const missing = input.limit - state.found.length;
    const spare = Math.min(state.damaged.size + state.parked.length, spareMax);
    const count = Math.min((missing + spare) * 2 ** round, triedMax - state.tried.size);
    if (missing === 0 || count <= 0 || state.isFull) break;
    const { items, isLimited, walked } = yield* candidatesOf({
      functions: input.functions,
      holdings,
      chosen: state.found.map(({ candidate }) => candidate),
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

/** Locks at most one suspect. Returns true if it is locked alone. */
function* trySuspects(
  context: ExecutionContext,
  input: LockPending,
  where: Pick<LookForSuspects, "names" | "holdings">,
  state: Search,
): Tx<boolean> {
  const { functions, codeVersion, at, suspects: wanted } = input;
  const due = yield* suspectsDue({ ...where, functions, codeVersion, dueBy: at });
  state.suspectsLeft = due.length;
  if (wanted === "none") return false;
  const terms: LockPending = wanted === "alone" ? { ...input, alone: true } : input;
  const dueBy = suspectsDueBy(wanted, at);
  for (const candidate of due) {
    if (candidate.due_at > dueBy) continue;
    yield* tryCandidates(context, terms, [candidate], 1, state);
    if (state.found.length === 0) continue;
    state.suspectsLeft -= 1;
    return wanted === "alone";
  }
  return false;
}

/** Locks and reads as many candidates as are missing. Returns true if it tried them all. */
function* tryCandidates(
  context: ExecutionContext,
  input: LockPending,
  candidates: readonly Candidate[],
  rowsMax: number,
  state: Search,
): Tx<boolean> {
  const triedBefore = state.tried.size;
  const locked = yield* lockBest(candidates, input.at, rowsMax, state.tried);
  const byKey = new Map(candidates.map((candidate) => [candidate.key, candidate]));
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
    const candidate = byKey.get(record.key);
    if (execution === undefined || candidate === undefined) continue;
    state.found.push({ candidate, record, execution });
  }
  return state.tried.size === triedBefore + candidates.length;
}

/**
 * Locks the best candidates. Ones that another worker has locked are replaced by the longest due of
 * the others.
 */
function* lockBest(
  candidates: readonly Candidate[],
  dueBy: number,
  rowsMax: number,
  tried: Set<number>,
): Tx<readonly StateRow[]> {
  const best = candidates.slice(0, rowsMax).map(({ key }) => key);
  for (const key of best) tried.add(key);
  const locked = yield* lockRows(best, dueBy, rowsMax);
  const inOrder = locked.toSorted((a, b) => best.indexOf(a.key) - best.indexOf(b.key));
  const missing = rowsMax - locked.length;
  const others = candidates.slice(rowsMax).toSorted(longestDueFirst);
  if (missing === 0 || others.length === 0) return inOrder;
  const keys = others.map(({ key }) => key);
  const more = yield* lockRows(keys, dueBy, missing);
  // As many rows as requested: the rows before the last were skipped. Fewer rows: all were tried.
  const last = more.length === missing ? more.at(-1)?.key : keys.at(-1);
  for (const key of keys.slice(0, last === undefined ? 0 : keys.indexOf(last) + 1)) tried.add(key);
  return [...inOrder, ...more];
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

const unreadable: ReadonlySet<ErrorCode> = new Set(["CORRUPT_ROW", "VALUE_MALFORMED"]);

function* loadUndamaged(
  context: ExecutionContext,
  record: ExecutionRecord,
  terms: LockPending,
  inputs: LockedInputs | undefined,
  { budget, damaged, parked }: Search,
): Tx<LockedExecution | undefined> {
  const version = record.state.version + 1;
  try {
    const { holder, leaseUntil, alone: isAlone = false } = terms;
    const previous = previousCodeVersion(record.state);
    const held = { holder, leaseUntil, isAlone, previousCodeVersion: previous };
    return yield* loadLocked(context, record, version, held, inputs, budget);
  } catch (error) {
    if (!isHoldfastError(error)) throw error;
    if (error.code === "PAYLOAD_CODEC_FAILED" && record.state.lifecycle === "active") {
      parked.push(yield* parkSealed(context, record, error, terms));
      return undefined;
    }
    if (error.code !== "PAYLOAD_CODEC_FAILED" && !unreadable.has(error.code)) throw error;
    const table = "holdfast_execution_event";
    damaged.set(record.key, { table, key: record.id });
    return undefined;
  }
}

/**
 * Parks runs whose values cannot be decoded, usually because a key was rotated away. An operator
 * must see it, and unpark the run once the key is back.
 */
function* parkSealed(
  context: ExecutionContext,
  record: ExecutionRecord,
  { code, message: reason }: HoldfastError,
  { at, codeVersion }: LockPending,
): Tx<Parked> {
  yield* appendTo(context, record, at, [{ kind: "parked", code, reason, codeVersion }]);
  return { id: record.id, function: record.function, code, reason };
}

/** Locks the first rows that are still due and not locked by another worker. */
function* lockRows(keys: readonly number[], dueBy: number, limit: number): Tx<readonly StateRow[]> {
  if (keys.length === 0) return [];
  return yield* rows<StateRow>(sql`
    SELECT ${stateColumns} FROM holdfast_execution
    WHERE key IN ${integersOf(keys)} AND state = 'pending' AND lifecycle <> 'paused' AND due_at <= ${dueBy}
    ORDER BY due_at, id LIMIT ${limit} ${skipLocked}`);
}
