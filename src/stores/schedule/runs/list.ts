import type { Cadence } from "../../../model/trigger/schedule-cadence.ts";
import type { CatchUp, SkippedInstants } from "../../../model/trigger/schedule-plan.ts";
import type { Overlap } from "../../../model/trigger/run-schedule.ts";
import { runSchedules } from "../../../model/trigger/run-schedule.ts";
import { rows, storeOperation, type Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import type { StoreContext } from "../../context.ts";
import { list, pageOf, sliced, type List, type PageOptions } from "../../list.ts";
import { instantsOf } from "../cadence.ts";
import { scheduleOf, type ScheduleRow } from "../schedule-row.ts";
import {
  functionOf,
  functionTable,
  type FunctionRow,
  type ScheduledState,
} from "./function-row.ts";

/** A schedule that starts runs. Instants are in milliseconds since 1970. */
export interface RunSchedule {
  readonly name: string;
  /** The name of the function that it starts. */
  readonly function: string;
  readonly cadence: Cadence;
  readonly overlap: Overlap;
  readonly catchUp: CatchUp;
  readonly catchUpMax: number;
  readonly isPaused: boolean;
  /** The next five instants, the first of which may be overdue; none while it is paused. */
  readonly next: readonly number[];
  /** The last instant that has come, even if it started nothing. */
  readonly lastAt: number | null;
  /** The id of the last started run, by the schedule or by hand. */
  readonly lastRun: string | null;
  /** The number of instants that wait for a run to end. */
  readonly waiting: number;
  /**
   * Instants that started nothing because of unfinished runs: their number and the last one; null
   * when there were none.
   */
  readonly skipped: ScheduledState["skipped"];
  /**
   * The last instants that passed while no worker ran or while it was paused, and that are not
   * caught up.
   */
  readonly missed: SkippedInstants | null;
  /** The code of the error of the last attempt at its next instant; null without one. */
  readonly failure: string | null;
}

/** Both rows. The key belongs to the function row, so a damaged one is named by it. */
interface RunScheduleRow extends Omit<FunctionRow, "input" | "input_hash"> {
  readonly kind: string | null;
  readonly cadence: string | null;
  readonly catch_up: string;
  readonly catch_up_max: number;
  readonly revision: number;
  readonly next_at: number | null;
  readonly last_at: number | null;
  readonly fired_at: number | null;
  readonly skipped_from: number | null;
  readonly skipped_before: number | null;
  readonly failures: number;
  readonly failure: string | null;
  readonly waiting: number;
}

/** The schedules that start runs, by name. */
export const runScheduleList: List<StoreContext, [options?: PageOptions], RunSchedule> = list(
  "listRunSchedules",
  {
    table: functionTable,
    given(_: StoreContext, options?: PageOptions) {
      return { filter: {}, page: pageOf(options, []).page };
    },
    slice: (_, _filter, bounds) =>
      sliced(
        bounds,
        ({ name }: RunScheduleRow) => [name],
        function* (after, count) {
          return yield* rows<RunScheduleRow>(sql`
          SELECT f.key, f.name, f.role, f.function, f.overlap, f.is_paused, f.last_run, f.skips, f.skipped_at,
            f.skip_reason, f.changed_at, s.kind, s.cadence, s.catch_up, s.catch_up_max, s.revision, s.next_at, s.last_at,
            s.fired_at, s.skipped_from, s.skipped_before, s.failures, s.failure,
            (SELECT count(*) FROM holdfast_schedule_run r WHERE r.schedule = f.key AND r.execution IS NULL) AS waiting
          FROM holdfast_schedule_function f
            LEFT JOIN holdfast_schedule s ON s.kind = ${runSchedules} AND s.name = f.name
          WHERE f.name > ${String(after?.[0] ?? "")} ORDER BY f.name LIMIT ${count}`);
        },
      ),
    keyOf: ({ name }) => name,
    itemOf: ({ clock }, found) => runScheduleOf(found, clock.now()),
  },
);

/** @throws HoldfastError `CORRUPT_ROW`, `NAME_INVALID` */
function runScheduleOf(found: RunScheduleRow, now: number): RunSchedule {
  const started = functionOf({ ...found, input_hash: "" });
  const { cadence, catchUp, catchUpMax, nextAt, lastAt, skipped, failure } =
    // A schedule without its other half has no cadence, and an empty text is not one.
    scheduleOf({
      ...found,
      kind: runSchedules,
      cadence: found.cadence ?? "",
    } satisfies ScheduleRow);
  return {
    name: found.name,
    function: started.function,
    cadence,
    overlap: started.overlap,
    catchUp,
    catchUpMax,
    isPaused: started.isPaused,
    next: nextAt === null ? [] : upcoming(cadence, nextAt, now),
    lastAt,
    lastRun: started.lastRun,
    waiting: found.waiting,
    skipped: started.skipped,
    missed: skipped,
    failure,
  };
}

const shownInstants = 5;

/**
 * The stored instant counts even if the cadence no longer has it. Firing decides which instants
 * between it and now are caught up.
 */
function upcoming(cadence: Cadence, nextAt: number, now: number): readonly number[] {
  const instants = instantsOf(cadence);
  const found = [nextAt];
  for (let last = Math.max(nextAt, now); found.length < shownInstants;) {
    const next = instants.next(last);
    if (next === undefined) break;
    found.push((last = next));
  }
  return found;
}

/**
 * Schedules of runs that have been due since before an instant, because no worker fires them.
 * Longest overdue first.
 */
export const findOverdue = storeOperation("findOverdue", {
  key: () => "",
  *one(
    _: object,
    { before }: { readonly before: number },
  ): Tx<readonly { readonly name: string; readonly due_at: number }[]> {
    return yield* rows<{ readonly name: string; readonly due_at: number }>(sql`
      SELECT name, due_at FROM holdfast_schedule
      WHERE kind = ${runSchedules} AND due_at <= ${before} ORDER BY due_at, key LIMIT 100`);
  },
});
