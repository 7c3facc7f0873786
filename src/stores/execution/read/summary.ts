import type { ExecutionEvent, ExecutionRole } from "../../../model/execution/event.ts";
import { splitToParts, type ExecutionId } from "../../../model/ids/execution-id.ts";
import { interruptionBy, type Interruption } from "../../../model/execution/interruption.ts";
import type { ExecutionState, Lifecycle } from "../../../model/execution/state.ts";
import { statusOf, type ExecutionStatus } from "../../../model/execution/status.ts";
import type { FunctionName } from "../../../model/ids/function-name.ts";
import { integersOf } from "../../../sql/dialect.ts";
import { rows, type Tx } from "../../../sql/operation.ts";
import { sql, type Statement } from "../../../sql/statement.ts";
import { pageBytesMax, rowsWithin } from "../../list.ts";
import {
  eventColumns,
  eventOf,
  sizedEventColumns,
  type EventRow,
  type SizedEventRow,
} from "../event-row.ts";
import { eventFault } from "../log/event-fields.ts";
import { corruptLog, stateColumns, stateOf, type StateRow } from "../state-row.ts";

/** An execution in a list. */
export interface ExecutionSummary {
  readonly id: ExecutionId;
  /** Null for a top-level execution. */
  readonly parent: ExecutionId | null;
  readonly role: ExecutionRole;
  readonly function: FunctionName;
  readonly createdAt: number;
  readonly scheduledAt: number;
  /** The version of the next event; for a finished execution that of the last one. */
  readonly nextVersion: number;
  readonly codeVersion: string | null;
  readonly concurrencyKey: string | null;
  readonly deadlineAt: number | null;
  /** The status, judged when it was read. */
  readonly status: ExecutionStatus;
  /**
   * The latest instant at which it resumes by itself: the instant that it waits for, or that of its
   * earliest open delay that is not paused; null when there is none.
   */
  readonly sleepsUntil: number | null;
  /** The start and the reason of its pause, cancellation or parking; null while it is active. */
  readonly interruption: Interruption | null;
  readonly state: ExecutionState;
}

export interface SummaryRow extends StateRow {
  readonly created_at: number;
  readonly scheduled_at: number;
  readonly concurrency_key: string | null;
  readonly deadline_at: number | null;
}

export const summaryColumns: Statement = sql`
  ${stateColumns}, created_at, scheduled_at, concurrency_key, deadline_at`;

/** A row with its data from other tables. */
export interface DetailedRow extends SummaryRow {
  readonly sleepsUntil: number | null;
  /** The event that last interrupted it. */
  readonly interruptedBy: EventRow | undefined;
  /** The time at which it was read. */
  readonly now: number;
}

/**
 * Rows in order with their details, as long as the reasons of the interrupted ones fit into a page:
 * at least one.
 */
export function* withDetails(
  found: readonly SummaryRow[],
  now: number,
): Tx<readonly DetailedRow[]> {
  const { events, count } = yield* interruptionsIn(found);
  const kept = found.slice(0, count);
  const sleeps = yield* sleepsOf(kept);
  return kept.map((row) => ({
    ...row,
    sleepsUntil: earlier(sleeps.get(row.key) ?? null, row.wake_at),
    interruptedBy: events.get(row.key),
    now,
  }));
}

function earlier(a: number | null, b: number | null): number | null {
  return a === null || b === null ? (a ?? b) : Math.min(a, b);
}

function* sleepsOf(found: readonly SummaryRow[]): Tx<ReadonlyMap<number, number | null>> {
  const open = found.filter(({ state }) => state !== "finished");
  if (open.length === 0) return new Map();
  const sleeps = yield* rows<{
    readonly key: number;
    readonly until: number | null;
  }>(sql`
    SELECT x.key AS key, (
      SELECT d.expires_at FROM holdfast_execution_delay AS d
      WHERE d.execution = x.key AND d.is_paused = 0 ORDER BY d.expires_at LIMIT 1) AS until
    FROM holdfast_execution AS x WHERE x.key IN ${integersOf(open.map(({ key }) => key))}`);
  return new Map(sleeps.map(({ key, until }) => [key, until]));
}

interface Interruptions {
  readonly events: ReadonlyMap<number, EventRow>;
  /** The number of rows that fit. */
  readonly count: number;
}

interface OfExecution {
  readonly execution: number;
}

function* interruptionsIn(found: readonly SummaryRow[]): Tx<Interruptions> {
  const interrupted = found.filter(({ lifecycle }) => lifecycle !== "active");
  if (interrupted.length === 0) return { events: new Map(), count: found.length };
  const smallMax = Math.floor(pageBytesMax / interrupted.length);
  const sized = new Map(
    (yield* interruptingEvents<SizedEventRow>(interrupted, sizedEventColumns(smallMax))).map(
      (event) => [event.execution, event],
    ),
  );
  const sizes = interrupted.map(({ key }) => sized.get(key)?.bytes ?? 0);
  const fitting = interrupted.slice(0, rowsWithin(sizes, pageBytesMax));
  const large = fitting.filter(({ key }) => sized.get(key)?.body === null);
  const whole = yield* interruptingEvents<EventRow>(large, eventColumns);
  const next = interrupted[fitting.length];
  return {
    events: new Map(
      [...sized.values(), ...whole].flatMap((event) =>
        isWhole(event) ? [[event.execution, event]] : [],
      ),
    ),
    count: next === undefined ? found.length : found.indexOf(next),
  };
}

function isWhole(event: EventRow | SizedEventRow): event is EventRow {
  return event.body !== null;
}

/** The event kind that leads to each lifecycle. */
const interrupting: readonly (readonly [Lifecycle, ExecutionEvent["kind"]])[] = [
  ["paused", "paused"],
  ["cancelling", "cancellationRequested"],
  ["parked", "parked"],
];

/**
 * The last event that set each execution's current lifecycle; none for those that were created
 * paused. It is near the end of the log: later events are what a worker still records, or its
 * cleanup. An index of these would cost every event 3 %.
 */
function* interruptingEvents<E>(
  interrupted: readonly SummaryRow[],
  columns: Statement,
): Tx<readonly (E & OfExecution)[]> {
  const events: (E & OfExecution)[] = [];
  for (const [lifecycle, kind] of interrupting) {
    const own = interrupted.filter((row) => row.lifecycle === lifecycle);
    if (own.length === 0) continue;
    const keys = integersOf(own.map(({ key }) => key));
    // The limit prevents Postgres from looking up the events of all executions before these.
    const found = yield* rows<E & OfExecution>(sql`
      SELECT e.execution AS execution, ${columns}
      FROM (
        SELECT x.key AS run, (
          SELECT q.version FROM holdfast_execution_event AS q
          WHERE q.execution = x.key AND q.kind = ${kind} ORDER BY q.version DESC LIMIT 1) AS last
        FROM holdfast_execution AS x WHERE x.key IN ${keys} LIMIT ${own.length}
      ) AS newest CROSS JOIN holdfast_execution_event AS e
      WHERE e.execution = newest.run AND e.version = newest.last`);
    events.push(...found);
  }
  return events;
}

/** @throws HoldfastError `CORRUPT_ROW` when the columns contradict each other. */
export function summaryOf(found: DetailedRow): ExecutionSummary {
  const state = stateOf(found);
  const isFinished = state.pending.kind === "finished";
  return {
    id: found.id,
    parent: splitToParts(found.id)?.parent ?? null,
    role: found.role,
    function: found.function,
    createdAt: found.created_at,
    scheduledAt: found.scheduled_at,
    nextVersion: isFinished ? state.version : state.version + 1,
    codeVersion: found.code_version,
    concurrencyKey: found.concurrency_key,
    deadlineAt: found.deadline_at,
    status: statusOf(state, found.now),
    sleepsUntil: found.sleepsUntil,
    interruption: interruptionIn(found),
    state,
  };
}

/** The interruption of a row. @throws HoldfastError `CORRUPT_ROW` when the log does not tell. */
function interruptionIn(found: DetailedRow): Interruption | null {
  const { lifecycle, interruptedBy, created_at: since } = found;
  if (lifecycle === "active") return null;
  if (interruptedBy === undefined && lifecycle === "paused") return { kind: "paused", since };
  const logged = interruptedBy && eventOf(interruptedBy);
  const isSound = logged !== undefined && eventFault(logged.event) === undefined;
  const interruption = isSound ? interruptionBy(logged.event, logged.at) : undefined;
  if (interruption?.kind !== lifecycle)
    throw corruptLog(found.id, logged?.version ?? found.version);
  return interruption;
}
