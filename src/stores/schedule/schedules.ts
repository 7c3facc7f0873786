import { HoldfastError } from "../../model/errors.ts";
import type { ScheduleDraft } from "../../model/trigger/schedule-cadence.ts";
import {
  checkedCount,
  checkedInstant,
  givenFunction,
  givenObject,
  givenSignal,
  optionsOf,
} from "../../model/shape.ts";
import type { Database, WaitOptions } from "../../sql/database.ts";
import type { Isolation } from "../../sql/isolation.ts";
import { storeContext, type StoreContext, type StoreOptions } from "../context.ts";
import { givenIsolation } from "../given.ts";
import { lists, type Page, type PageOptions } from "../list.ts";
import { readsLocking, writes, type Method } from "../method.ts";
import { instantsOf } from "./cadence.ts";
import { fireOwnSchedule, fireSchedule } from "./fire.ts";
import {
  givenChange,
  givenPut,
  newTerms,
  pauseSchedule,
  putSchedule,
  refuseReserved,
  removeSchedule,
} from "./parts.ts";
import { givenRead, lockReadSchedule, readSchedule, scheduleList } from "./read.ts";
import type { FireSchedule, Schedule, Scheduler, SchedulerOptions } from "./schedule-row.ts";
import { RunningScheduler } from "./scheduler.ts";

/** Recurring schedules, each instant of which fires once. */
export interface Schedules {
  /**
   * Creates a schedule of a kind, changes its terms, or resumes a paused one. With unchanged terms
   * it keeps its next instant. Accepts any kind except `trigger` and `run`: schedules of
   * subscriptions and of workers can only be read here.
   * @throws HoldfastError `NAME_INVALID`, `OPTION_INVALID`, `CRON_INVALID`, `TIME_ZONE_INVALID`, `INTERVAL_INVALID`, `DURATION_INVALID`, `TIME_OUT_OF_RANGE`
   * @example await schedules.put("report", "daily", { cron: "0 9 * * 1-5", timeZone: "Europe/Berlin" });
   */
  readonly put: Method<
    [kind: string, name: string, draft: ScheduleDraft, wait?: WaitOptions],
    {
      /** False when it already had these terms and was not paused. */
      readonly isChanged: boolean;
      readonly revision: number;
      readonly nextAt: number | null;
    }
  >;
  /**
   * Pauses a schedule until it is put again; instants in between do not fire. True when it was
   * running.
   * @throws HoldfastError `NAME_INVALID`
   */
  readonly pause: Method<[kind: string, name: string, wait?: WaitOptions], boolean>;
  /**
   * Removes a schedule; true when it existed.
   * @throws HoldfastError `NAME_INVALID`
   */
  readonly remove: Method<[kind: string, name: string, wait?: WaitOptions], boolean>;
  /**
   * Returns a schedule of any kind; undefined when it is unknown.
   * @throws HoldfastError `NAME_INVALID`, `CORRUPT_ROW`
   */
  readonly get: Method<[kind: string, name: string, wait?: WaitOptions], Schedule | undefined>;
  /**
   * The schedules of a kind, by name.
   * @throws HoldfastError `NAME_INVALID`, `CURSOR_INVALID`
   * @example const { items, next } = await schedules.list("report");
   */
  readonly list: Method<[kind: string, options?: PageOptions], Page<Schedule>>;
  /**
   * Computes the next instants of a schedule with these terms. Reads nothing.
   * @throws HoldfastError the same as `put`
   * @example schedules.upcoming({ cron: "0 9 * * 1" }, { limit: 2 });
   */
  upcoming(
    draft: ScheduleDraft,
    options?: {
      /** Defaults to now. */
      readonly after?: number;
      /** 1 to 1,000; defaults to 10. */
      readonly limit?: number;
    },
  ): readonly number[];
  /**
   * Fires schedules of the given kinds until it is closed. Each kind has its own part of a
   * transaction. The transaction that fires an instant also advances the schedule, so each instant
   * fires once, however many processes run this. It is serializable by default, so rows that a part
   * selects are still current when it commits. A part that fails is reported to `onError` and
   * retried later.
   * @throws HoldfastError `OPTION_INVALID`, also for an async function: a transaction cannot await; `NAME_INVALID`
   * @example const running = schedules.run({ report: (due) => startReport(due) });
   */
  run(fire: Readonly<Record<string, FireSchedule>>, options?: ScheduleRunOptions): Scheduler;
}

interface ScheduleRunOptions extends SchedulerOptions {
  /**
   * Defaults to `serializable`. Use `readCommitted` for parts that lock the rows that they decide
   * by with `lockRow`.
   */
  readonly isolation?: Isolation;
}

/** Holds nothing but running schedulers, so one database can have any number of these. */
export function schedules(database: Database, options?: StoreOptions): Schedules {
  const context = storeContext(database, options);
  return {
    put: writes(context, putSchedule, givenPut),
    pause: writes(context, pauseSchedule, givenChange),
    remove: writes(context, removeSchedule, givenChange),
    get: readsLocking(lockReadSchedule)(context, readSchedule, givenRead),
    list: lists(context, scheduleList),
    upcoming: (draft, given) => upcomingInstants(context, draft, given),
    run: (fire, given) => runSchedules(context, fire, given),
  };
}

function upcomingInstants(
  { clock }: StoreContext,
  draft: ScheduleDraft,
  options: { readonly after?: number; readonly limit?: number } | undefined,
): readonly number[] {
  const now = clock.now();
  const { after = now, limit = 10 } = optionsOf(options, ["after", "limit"]);
  const { cadence } = newTerms(draft, now);
  const instants = instantsOf(cadence);
  const found: number[] = [];
  const max = checkedCount("limit", limit, { min: 1, max: 1_000 });
  for (let last = checkedInstant("after", after); found.length < max;) {
    const next = instants.next(last);
    if (next === undefined) break;
    found.push((last = next));
  }
  return found;
}

function runSchedules(
  { database, clock }: StoreContext,
  fire: Readonly<Record<string, FireSchedule>>,
  options: ScheduleRunOptions | undefined,
): Scheduler {
  for (const [kind, each] of Object.entries(givenObject("fire", fire))) {
    refuseReserved(kind);
    if (typeof each !== "function" || isAsync(each))
      throw new HoldfastError(
        "OPTION_INVALID",
        `The part that fires schedules of kind "${kind}" must be a generator function: function* (due) { … }. It runs inside a transaction, which cannot await.`,
        { option: "fire", kind },
      );
  }
  const { isolation, ...listeners } = optionsOf(options, [...schedulerOptionNames, "isolation"]);
  return new RunningScheduler(
    {
      database,
      clock,
      firing: fireSchedule,
      isolation: givenIsolation(isolation),
    },
    fire,
    checkedListeners(listeners),
  );
}

/**
 * Detects an async function before the call. Its work would run outside the transaction, and its
 * failure would be lost.
 */
function isAsync(given: object): boolean {
  return Object.prototype.toString.call(given).startsWith("[object Async");
}

/**
 * A scheduler for schedules that belong to another store, which fires them itself.
 * @throws HoldfastError `OPTION_INVALID`
 */
export function runOwnSchedules(
  { database, clock }: StoreContext,
  fire: Readonly<Record<string, FireSchedule>>,
  options: SchedulerOptions | undefined,
  names?: readonly string[],
): Scheduler {
  return new RunningScheduler(
    { database, clock, firing: fireOwnSchedule, names },
    fire,
    checkedListeners(optionsOf(options, schedulerOptionNames)),
  );
}

const schedulerOptionNames = [
  "signal",
  "onFired",
  "onSkipped",
  "onError",
] as const satisfies readonly (keyof SchedulerOptions)[];

function checkedListeners(options: SchedulerOptions): SchedulerOptions {
  const { signal, onFired, onSkipped, onError } = options;
  givenSignal(signal);
  for (const [name, listener] of Object.entries({
    onFired,
    onSkipped,
    onError,
  }))
    givenFunction(name, listener);
  return options;
}
