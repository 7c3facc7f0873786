import type { ExecutionId } from "../../../model/ids/execution-id.ts";
import {
  decideOverlap,
  instantRunId,
  instantText,
  scheduleTag,
  type SkipReason,
} from "../../../model/trigger/run-schedule.ts";
import { integersOf } from "../../../sql/dialect.ts";
import { announce, row, rows, run, storeOperation, type Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { changedRow, readValue } from "../../damage.ts";
import type { ExecutionContext } from "../../execution/context.ts";
import {
  cancelOrMark,
  createIfFree,
  newExecution,
  unfinishedAmong,
} from "../../execution/parts.ts";
import { scheduleChanged, type DueInstant } from "../schedule-row.ts";
import {
  countSkips,
  functionOf,
  functionTable,
  lockedFunction,
  ofKindRun,
  presentFunction,
  type FunctionRow,
} from "./function-row.ts";

/**
 * Starts runs for schedules. Each of these bodies first locks the function row of the schedule, so
 * only one at a time judges the unfinished runs and the waiting instants:
 *
 *   function row → executions (created, cancelled) → schedule row (advanced)
 *
 * Nothing else locks that row, and the end of a run does not touch it. Ends that no schedule has
 * noticed yet are looked up here.
 */

/** The outcome of an instant. */
export type InstantOutcome =
  | {
      readonly kind: "started";
      readonly run: ExecutionId;
      readonly function: string;
    }
  /** It starts when `unfinished` have ended. */
  | {
      readonly kind: "waiting";
      readonly cancelled: readonly ExecutionId[];
      /** Waiting instants that start nothing, since this one came. */
      readonly replaced: number;
    }
  | { readonly kind: "skipped"; readonly reason: SkipReason }
  /** The schedule was removed a moment ago. */
  | { readonly kind: "gone" };

/** Starts the run of an instant, in the transaction that advances its schedule. */
export function* startDue(
  context: ExecutionContext,
  { name, instant, at }: Pick<DueInstant, "name" | "instant" | "at">,
): Tx<InstantOutcome> {
  const found = yield* lockedFunction(name);
  if (found === undefined) return { kind: "gone" };
  const { overlap } = functionOf(found);
  const unfinished = yield* lookForUnfinished(found, overlap === "allow");
  const waiting = yield* countWaiting(found);
  const decision = decideOverlap(overlap, {
    unfinished: unfinished.length,
    waiting,
  });
  switch (decision.kind) {
    case "start":
      return yield* startInstant(context, found, instant, at);
    case "skip":
      yield* countSkips(found.key, 1, instant, decision.reason);
      return { kind: "skipped", reason: decision.reason };
    case "wait":
      yield* insertWaiting(found, instant);
      return { kind: "waiting", cancelled: [], replaced: 0 };
    case "cancel":
      return yield* cancelAndWait(context, found, unfinished, instant, at);
  }
}

/** Starts at once when all unfinished runs could be ended at once. */
function* cancelAndWait(
  context: ExecutionContext,
  found: FunctionRow,
  unfinished: readonly ExecutionId[],
  instant: number,
  at: number,
): Tx<InstantOutcome> {
  const reason = `The instant ${instantText(instant)} of its schedule has come.`;
  const cancelled = context.values.finished({ kind: "cancelled", reason });
  let hasEnded = true;
  for (const id of unfinished) {
    const input = { id, at, reason, cancelled };
    const outcome = yield* cancelOrMark(context, input);
    hasEnded &&= outcome === "cancelled" || outcome === "alreadyFinished";
  }
  const before = yield* rows<{ readonly instant: number }>(sql`
    SELECT instant FROM holdfast_schedule_run WHERE schedule = ${found.key} AND execution IS NULL ORDER BY instant`);
  const last = before.at(-1);
  if (last !== undefined) {
    yield* run(sql`
      DELETE FROM holdfast_schedule_run WHERE schedule = ${found.key} AND execution IS NULL`);
    yield* countSkips(found.key, before.length, last.instant, "replaced");
  }
  if (hasEnded) return yield* startInstant(context, found, instant, at);
  yield* insertWaiting(found, instant);
  return { kind: "waiting", cancelled: unfinished, replaced: before.length };
}

/** The number of runs per lookup. More are unfinished only where runs may overlap. */
const runsMax = 100;

/**
 * Runs whose end was not noticed yet, oldest first, up to `runsMax`. Ended runs are forgotten.
 * Where runs may overlap their number does not matter, and one lookup keeps it low.
 */
function* lookForUnfinished({ key }: FunctionRow, mayOverlap: boolean): Tx<readonly ExecutionId[]> {
  for (;;) {
    const found = yield* rows<{ readonly execution: number }>(sql`
      SELECT execution FROM holdfast_schedule_run
      WHERE schedule = ${key} AND execution IS NOT NULL ORDER BY run LIMIT ${runsMax}`);
    const keys = found.map(({ execution }) => execution);
    const unfinished = yield* unfinishedAmong(keys);
    const ended = keys.filter((each) => !unfinished.has(each));
    if (ended.length > 0)
      yield* run(sql`
        DELETE FROM holdfast_schedule_run
        WHERE schedule = ${key} AND execution IN ${integersOf(ended)}`);
    if (mayOverlap || unfinished.size > 0 || found.length < runsMax)
      return [...unfinished.values()];
  }
}

function* countWaiting({ key }: FunctionRow): Tx<number> {
  const found = yield* row<{ readonly count: number }>(sql`
    SELECT count(*) AS count FROM holdfast_schedule_run WHERE schedule = ${key} AND execution IS NULL`);
  return found?.count ?? 0;
}

function* insertWaiting({ key, name }: FunctionRow, instant: number): Tx<void> {
  yield* run(sql`
    INSERT INTO holdfast_schedule_run (schedule, run, instant)
    VALUES (${key}, ${instantRunId(name, instant)}, ${instant}) ON CONFLICT (schedule, run) DO NOTHING`);
  yield* announce(scheduleChanged, ofKindRun(name).kind);
}

/**
 * Creates the run of an instant, which may have waited. An id that another run has must not block
 * all later instants.
 */
function* startInstant(
  context: ExecutionContext,
  found: FunctionRow,
  instant: number,
  at: number,
): Tx<InstantOutcome> {
  const id = instantRunId(found.name, instant);
  const made = yield* createIfFree(null, draftOf(context, found, { id, instant, at }));
  if ("refusal" in made) {
    yield* run(sql`
      DELETE FROM holdfast_schedule_run WHERE schedule = ${found.key} AND run = ${id}`);
    yield* countSkips(found.key, 1, instant, "taken");
    return { kind: "skipped", reason: "taken" };
  }
  yield* remember(found, id, instant, made.key);
  return { kind: "started", run: id, function: found.function };
}

function* remember(
  { key }: FunctionRow,
  id: ExecutionId,
  instant: number,
  execution: number,
): Tx<void> {
  yield* run(sql`
    INSERT INTO holdfast_schedule_run (schedule, run, instant, execution)
    VALUES (${key}, ${id}, ${instant}, ${execution})
    ON CONFLICT (schedule, run) DO UPDATE SET execution = excluded.execution`);
  yield* run(sql`
    UPDATE holdfast_schedule_function SET last_run = ${id} WHERE key = ${key}`);
}

/** Uses the input as the schedule stores it: it was encoded when the schedule was put. */
function draftOf(
  context: ExecutionContext,
  found: FunctionRow,
  {
    id,
    instant,
    at,
  }: {
    readonly id: ExecutionId;
    readonly instant: number;
    readonly at: number;
  },
) {
  const { name, input, input_hash: inputHash } = found;
  const { values } = context;
  const value = readValue(functionTable, name, () => values.readValue(input));
  if (!values.agrees(value, inputHash)) throw changedRow(functionTable, name);
  const { role, function: started } = functionOf(found);
  const made = newExecution(
    context,
    {
      id,
      function: started,
      role,
      tags: [scheduleTag(name)],
      metadata: { schedule: name, instant: instantText(instant) },
    },
    at,
  );
  return { ...made, created: { ...made.created, input, inputHash } };
}

export interface FireNow {
  readonly name: string;
  readonly run: ExecutionId;
  readonly at: number;
}

/**
 * Starts a run outside the cadence, independent of unfinished runs, or returns the run that was
 * started under its id.
 * @throws HoldfastError `SCHEDULE_NOT_FOUND`, `EXECUTION_EXISTS`, `EXECUTION_BEING_REMOVED`
 */
export const fireNow = storeOperation("fireNow", {
  key: (input) => input.name,
  *one(
    context: ExecutionContext,
    { name, run: id, at }: FireNow,
  ): Tx<{ readonly function: string }> {
    const found = yield* presentFunction(name);
    const draft = draftOf(context, found, { id, instant: at, at });
    const made = yield* createIfFree(null, draft);
    if ("refusal" in made) throw made.refusal;
    if (!made.existed) yield* remember(found, id, at, made.key);
    return { function: found.function };
  },
});

/** Starts the first waiting instant of a schedule, if nothing blocks it any longer. */
export const startWaiting = storeOperation("startWaiting", {
  key: (input) => input.name,
  *one(
    context: ExecutionContext,
    { name }: { readonly name: string },
  ): Tx<{ readonly instant: number; readonly outcome: InstantOutcome } | undefined> {
    const found = yield* lockedFunction(name);
    if (found === undefined) return undefined;
    const { overlap, isPaused } = functionOf(found);
    if (isPaused) return undefined;
    const mayOverlap = overlap === "allow";
    const unfinished = yield* lookForUnfinished(found, mayOverlap);
    if (unfinished.length > 0 && !mayOverlap) return undefined;
    const first = yield* row<{ readonly instant: number }>(sql`
      SELECT instant FROM holdfast_schedule_run
      WHERE schedule = ${found.key} AND execution IS NULL ORDER BY instant LIMIT 1`);
    if (first === undefined) return undefined;
    const { instant } = first;
    const at = context.clock.now();
    const outcome = yield* startInstant(context, found, instant, at);
    return { instant, outcome };
  },
});

/** Schedules with waiting instants, and the runs that block them. */
export interface WaitingSchedule {
  readonly name: string;
  readonly unfinished: readonly ExecutionId[];
}

/** The schedules among some names that are not paused and have waiting instants. */
export const findWaiting = storeOperation("findWaiting", {
  key: () => "",
  *one(
    _: object,
    { names }: { readonly names: readonly string[] },
  ): Tx<readonly WaitingSchedule[]> {
    const found = yield* rows<{
      readonly key: number;
      readonly name: string;
      readonly overlap: string;
    }>(sql`
      SELECT f.key, f.name, f.overlap FROM holdfast_schedule_function f
      WHERE f.is_paused = 0 AND f.key IN (SELECT schedule FROM holdfast_schedule_run WHERE execution IS NULL)
      ORDER BY f.key`);
    const waiting: WaitingSchedule[] = [];
    for (const { key, name, overlap } of found) {
      if (!names.includes(name)) continue;
      const runs = yield* rows<{ readonly execution: number }>(sql`
        SELECT execution FROM holdfast_schedule_run
        WHERE schedule = ${key} AND execution IS NOT NULL ORDER BY run LIMIT ${runsMax}`);
      const keys = runs.map(({ execution }) => execution);
      const unfinished = overlap === "allow" ? new Map() : yield* unfinishedAmong(keys);
      waiting.push({ name, unfinished: [...unfinished.values()] });
    }
    return waiting;
  },
});
