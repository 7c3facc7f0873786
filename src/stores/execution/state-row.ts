import { corruptRow } from "../../model/corrupt-row.ts";
import { HoldfastError } from "../../model/errors.ts";
import { executionGone, executionNotFound, parentNotFound } from "../../model/execution/errors.ts";
import type {
  ExecutionRole,
  Holder,
  LoggedEvent,
  ResultKind,
} from "../../model/execution/event.ts";
import { lineOf, type ExecutionId } from "../../model/ids/execution-id.ts";
import {
  isSleeping,
  lastHolder,
  type BlockedOn,
  type ExecutionState,
  type Lifecycle,
  type PendingState,
} from "../../model/execution/state.ts";
import type { FunctionName } from "../../model/ids/function-name.ts";
import type { JoinSetId } from "../../model/ids/join-set-id.ts";
import { lockRow, textsOf } from "../../sql/dialect.ts";
import { row, run, type Tx } from "../../sql/operation.ts";
import { sql, type Statement } from "../../sql/statement.ts";
import { eventAt } from "./event-row.ts";

/**
 * The row of an execution: a fold over its events and responses, written in the same transaction,
 * so that a worker's questions are index lookups. `lease_until` is set only while a holder may
 * exist: the index for dead owners has one entry per held execution, none per sleeper.
 */

/** The columns of `holdfast_execution` that hold its state. */
export interface StateRow {
  readonly key: number;
  readonly id: ExecutionId;
  readonly parent: number | null;
  readonly role: ExecutionRole;
  readonly function: FunctionName;
  readonly version: number;
  readonly state: PendingState["kind"];
  readonly lifecycle: Lifecycle;
  readonly due_at: number | null;
  readonly lease_until: number | null;
  readonly finished_at: number | null;
  readonly result_kind: ResultKind | null;
  readonly failures: number;
  readonly deaths: number;
  readonly alone_deaths: number;
  readonly lock_version: number | null;
  readonly is_alone: number | null;
  readonly executor: Holder["executor"] | null;
  readonly run: Holder["run"] | null;
  readonly owner: Holder["owner"];
  readonly max_retries: number | null;
  readonly backoff_ms: number | null;
  readonly backoff_max_ms: number | null;
  readonly inbox: JoinSetId | null;
  readonly ordinal: number | null;
  readonly is_closing: number | null;
  readonly seen: number | null;
  readonly wake_at: number | null;
  readonly responses: number;
  readonly history_from: number;
  readonly responses_from: number;
  readonly continuations: number;
  readonly code_version: string | null;
  readonly incompatible: string | null;
  readonly process: number | null;
  readonly session: number | null;
}

export const stateColumns: Statement = sql`
  key, id, parent, role, function, version, state, lifecycle, due_at, lease_until, finished_at, result_kind,
  failures, deaths, alone_deaths, lock_version, is_alone, executor, run, owner, max_retries, backoff_ms, backoff_max_ms,
  inbox, ordinal, is_closing, seen, wake_at, responses, history_from, responses_from, continuations, code_version,
  incompatible, process, session`;

/** An execution with its state, as operations use it. */
export interface ExecutionRecord {
  readonly key: number;
  readonly id: ExecutionId;
  readonly parent: number | null;
  readonly function: FunctionName;
  readonly state: ExecutionState;
  /** The process that it was spawned for; the process ends with it. */
  readonly process: number | null;
  /** The session whose turn it is; the turn ends with it. */
  readonly session: number | null;
}

/**
 * A condition on the row: false if the execution or an ancestor is being removed with its tree. It
 * then counts as missing. Only finished executions can be in such a tree, so it skips the others.
 */
export function isPresent(id: ExecutionId): Statement {
  const line = lineOf(id);
  if (line.length === 1) return sql`removing_at IS NULL`;
  return sql`(state <> 'finished' OR NOT EXISTS (
    SELECT 1 FROM holdfast_execution AS gone WHERE gone.id IN ${textsOf(line)} AND gone.removing_at IS NOT NULL))`;
}

/** A row that any worker may lock once it is due. Written as in the indexes of due work. */
export const isLockable: Statement = sql`state = 'pending' AND lifecycle IN ('active', 'cancelling') AND incompatible IS NULL AND deaths < 3`;

/** The same for an execution that no worker has had: retry terms come with the first lock. */
export const isLockableNew: Statement = sql`${isLockable} AND backoff_ms IS NULL`;

/** The same for an execution that a worker has had. */
export const isLockableBegun: Statement = sql`${isLockable} AND backoff_ms IS NOT NULL`;

/** The same for a run that remembers code versions under which it was parked. */
export const isInLane: Statement = sql`state = 'pending' AND incompatible IS NOT NULL AND deaths < 3`;

/** The same for a suspect: three workers in a row died while they held it (`suspectDeaths`). */
export const isSuspectRow: Statement = sql`state = 'pending' AND deaths >= 3 AND lifecycle <> 'paused'
  AND (lifecycle <> 'parked' OR incompatible IS NOT NULL)`;

/** The record of an execution, locked until the transaction ends. @throws HoldfastError `EXECUTION_NOT_FOUND` */
export function* lockedRecord(
  id: ExecutionId,
  as: "execution" | "parent" = "execution",
): Tx<ExecutionRecord> {
  const found = yield* row<StateRow>(sql`
    SELECT ${stateColumns} FROM holdfast_execution WHERE id = ${id} AND ${isPresent(id)} ${lockRow}`);
  if (found === undefined) throw as === "parent" ? executionNotFound(id, as) : yield* absence(id);
  return recordOf(found);
}

/** The same for the parent of a child. @throws HoldfastError `EXECUTION_NOT_FOUND` with `missing: "parent"` */
export function* lockedParent(id: ExecutionId, child: ExecutionId): Tx<ExecutionRecord> {
  const found = yield* row<StateRow>(sql`
    SELECT ${stateColumns} FROM holdfast_execution WHERE id = ${id} AND ${isPresent(id)} ${lockRow}`);
  if (found === undefined) throw parentNotFound(id, child);
  return recordOf(found);
}

/** Only the key, locked the same way. @throws HoldfastError `EXECUTION_NOT_FOUND` */
export function* lockedKey(id: ExecutionId): Tx<number> {
  const found = yield* row<{ readonly key: number }>(sql`
    SELECT key FROM holdfast_execution WHERE id = ${id} AND ${isPresent(id)} ${lockRow}`);
  if (found === undefined) throw yield* absence(id);
  return found.key;
}

/** Locks the execution of a read. The read itself reports a missing execution. */
export function* lockReadExecution(input: ExecutionId | { readonly id: ExecutionId }): Tx<void> {
  const id = typeof input === "string" ? input : input.id;
  yield* row(sql`SELECT key FROM holdfast_execution WHERE id = ${id} ${lockRow}`);
}

/** @throws HoldfastError `CORRUPT_ROW` when the columns contradict each other. */
export function recordOf(found: StateRow): ExecutionRecord {
  const { key, id, parent, function: name, process, session } = found;
  return { key, id, parent, function: name, state: stateOf(found), process, session };
}

export function stateOf(found: StateRow): ExecutionState {
  return {
    role: found.role,
    version: found.version,
    pending: pendingOf(found),
    lifecycle: found.lifecycle,
    failures: found.failures,
    deaths: found.deaths,
    aloneDeaths: found.alone_deaths,
    retry:
      found.backoff_ms === null
        ? null
        : {
            maxRetries: found.max_retries,
            backoffMs: found.backoff_ms,
            backoffMaxMs: found.backoff_max_ms ?? found.backoff_ms,
          },
    codeVersion: found.code_version,
    incompatible: incompatibleOf(found.id, found.incompatible),
    historyFrom: found.history_from,
    responsesFrom: found.responses_from,
    continuations: found.continuations,
    responses: found.responses,
  };
}

/** The code versions that a run remembers. @throws HoldfastError `CORRUPT_ROW` */
export function incompatibleOf(id: string, stored: string | null): readonly string[] {
  if (stored === null) return [];
  try {
    const versions: unknown = JSON.parse(stored);
    if (Array.isArray(versions)) return versions as readonly string[];
  } catch {
    // Reported below.
  }
  throw corruptRow("holdfast_execution", id, "has code versions that are not a list");
}

function pendingOf(found: StateRow): PendingState {
  const { executor, run: runId, owner, lease_until: leaseUntil } = found;
  const holder: Holder | null =
    executor !== null && runId !== null ? { executor, run: runId, owner } : null;
  switch (found.state) {
    case "pending": {
      const { due_at: dueAt, seen, wake_at: wakeAt } = found;
      if (dueAt === null || (seen === null) !== (wakeAt === null)) break;
      return {
        kind: "pending",
        dueAt,
        leaseUntil,
        lastLock: holder,
        ...(seen !== null && wakeAt !== null && { seen, wakeAt }),
      };
    }
    case "locked": {
      const { lock_version: lockVersion } = found;
      if (holder === null || leaseUntil === null || lockVersion === null) break;
      return { kind: "locked", holder, leaseUntil, lockVersion, isAlone: found.is_alone === 1 };
    }
    case "blocked": {
      const on = blockedOn(found);
      if (on === undefined) break;
      return { kind: "blocked", on, leaseUntil, lastLock: holder };
    }
    case "finished": {
      const { finished_at: finishedAt, result_kind: resultKind } = found;
      if (finishedAt === null || resultKind === null) break;
      return { kind: "finished", finishedAt, resultKind };
    }
    default:
  }
  throw corruptRow(
    "holdfast_execution",
    found.id,
    `has columns that contradict its state "${found.state}"`,
  );
}

function blockedOn(found: StateRow): BlockedOn | undefined {
  const { inbox: joinSet, ordinal } = found;
  if (joinSet !== null)
    return ordinal === null
      ? undefined
      : {
          kind: "joinSet",
          joinSet,
          ordinal,
          isClosing: found.is_closing === 1,
        };
  return found.seen === null ? { kind: "resolution" } : { kind: "responses", seen: found.seen };
}

/** The columns that a transition may change. */
export type StateValues = Omit<
  StateRow,
  "key" | "id" | "parent" | "role" | "function" | "process" | "session"
>;

/** The columns that hold the status of an execution and its holder. */
export type PendingValues = Pick<
  StateRow,
  | "state"
  | "due_at"
  | "lease_until"
  | "finished_at"
  | "result_kind"
  | "lock_version"
  | "is_alone"
  | "executor"
  | "run"
  | "owner"
  | "inbox"
  | "ordinal"
  | "is_closing"
  | "seen"
  | "wake_at"
>;

export function pendingValuesOf(pending: PendingState): PendingValues {
  const holder = lastHolder(pending);
  const on = pending.kind === "blocked" ? pending.on : undefined;
  const sleeping = isSleeping(pending) ? pending : undefined;
  return {
    state: pending.kind,
    due_at: pending.kind === "pending" ? pending.dueAt : null,
    lease_until: pending.kind === "finished" ? null : pending.leaseUntil,
    finished_at: pending.kind === "finished" ? pending.finishedAt : null,
    result_kind: pending.kind === "finished" ? pending.resultKind : null,
    lock_version: pending.kind === "locked" ? pending.lockVersion : null,
    is_alone: pending.kind === "locked" && pending.isAlone ? 1 : null,
    executor: holder?.executor ?? null,
    run: holder?.run ?? null,
    owner: holder?.owner ?? null,
    inbox: on?.kind === "joinSet" ? on.joinSet : null,
    ordinal: on?.kind === "joinSet" ? on.ordinal : null,
    is_closing: on?.kind === "joinSet" ? Number(on.isClosing) : null,
    seen: on?.kind === "responses" ? on.seen : (sleeping?.seen ?? null),
    wake_at: sleeping?.wakeAt ?? null,
  };
}

export function stateValuesOf(state: ExecutionState): StateValues {
  const { pending, retry } = state;
  return {
    ...pendingValuesOf(pending),
    version: state.version,
    lifecycle: state.lifecycle,
    failures: state.failures,
    deaths: state.deaths,
    alone_deaths: state.aloneDeaths,
    max_retries: retry?.maxRetries ?? null,
    backoff_ms: retry?.backoffMs ?? null,
    backoff_max_ms: retry?.backoffMaxMs ?? null,
    responses: state.responses,
    history_from: state.historyFrom,
    responses_from: state.responsesFrom,
    continuations: state.continuations,
    code_version: state.codeVersion,
    incompatible: state.incompatible.length === 0 ? null : JSON.stringify(state.incompatible),
  };
}

export function* writeState(key: number, state: ExecutionState): Tx<void> {
  const to = stateValuesOf(state);
  yield* run(sql`
    UPDATE holdfast_execution SET
      version = ${to.version}, state = ${to.state}, lifecycle = ${to.lifecycle}, due_at = ${to.due_at},
      lease_until = ${to.lease_until}, finished_at = ${to.finished_at}, result_kind = ${to.result_kind},
      failures = ${to.failures}, deaths = ${to.deaths}, alone_deaths = ${to.alone_deaths},
      lock_version = ${to.lock_version}, is_alone = ${to.is_alone},
      executor = ${to.executor}, run = ${to.run}, owner = ${to.owner}, max_retries = ${to.max_retries},
      backoff_ms = ${to.backoff_ms}, backoff_max_ms = ${to.backoff_max_ms}, inbox = ${to.inbox},
      ordinal = ${to.ordinal}, is_closing = ${to.is_closing}, seen = ${to.seen}, wake_at = ${to.wake_at}, responses = ${to.responses},
      history_from = ${to.history_from}, responses_from = ${to.responses_from},
      continuations = ${to.continuations}, code_version = ${to.code_version},
      incompatible = ${to.incompatible}
    WHERE key = ${key}`);
}

/** The few columns of an execution's row that find the rest. */
export interface Standing {
  readonly key: number;
  readonly version: number;
  readonly responses: number;
  readonly state: string;
  /**
   * The version before which its history was pruned, except its creation; 0 when the history is
   * whole.
   */
  readonly prunedBefore: number;
}

/** The standing of an execution, or undefined when it is missing. */
export function* findStanding(id: ExecutionId): Tx<Standing | undefined> {
  return yield* row<Standing>(sql`
    SELECT key, version, responses, state, pruned_before AS "prunedBefore" FROM holdfast_execution WHERE id = ${id} AND ${isPresent(id)}`);
}

/** @throws HoldfastError `EXECUTION_NOT_FOUND` */
export function* standing(id: ExecutionId): Tx<Standing> {
  const found = yield* findStanding(id);
  if (found === undefined) throw yield* absence(id);
  return found;
}

/** The error for a missing execution: it was erased, or is unknown. */
export function* absence(id: ExecutionId): Tx<HoldfastError> {
  const left = yield* row<{ readonly erasedAt: number | null }>(sql`
    SELECT erased_at AS "erasedAt" FROM holdfast_execution WHERE id = ${id}`);
  return left === undefined || left.erasedAt === null
    ? executionNotFound(id)
    : executionGone(id, left.erasedAt);
}

/** The event of a version that must exist. @throws HoldfastError `CORRUPT_ROW` */
export function* soundEvent(id: ExecutionId, execution: number, version: number): Tx<LoggedEvent> {
  const found = yield* eventAt(execution, version);
  if (found === undefined) throw corruptLog(id, version);
  return found;
}

/** The error for a state row that refers to an event which is missing or of another kind. */
export function corruptLog(id: ExecutionId, version: number): HoldfastError {
  return new HoldfastError(
    "CORRUPT_ROW",
    `Event ${version} of run ${id} is missing or contradicts its state, which no operation of Holdfast writes. ` +
      "Run `npx holdfast check`. `npx holdfast repair --apply` fixes a row that contradicts its log; for other damage, restore a backup.",
    { table: "holdfast_execution_event", key: `${id}#${version}` },
  );
}
