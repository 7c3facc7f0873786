import type { Clock } from "../../model/clock.ts";
import { HoldfastError } from "../../model/errors.ts";
import {
  checkedFilterText,
  checkedInstant,
  givenObject,
  optionsOf,
} from "../../model/shape.ts";
import type { Database, WaitOptions } from "../../sql/database.ts";
import { givenDatabase, givenIsolation } from "../given.ts";
import { checkedLimit } from "../paging.ts";
import type { Page, PageOptions } from "../list.ts";
import { instantsOf } from "./cadence.ts";
import {
  checkedKind,
  checkedName,
  checkedOwnName,
  checkedSchedulerOptions,
  checkedTerms,
  refuseReserved,
} from "./checks.ts";
import type { ScheduleDraft } from "./checks.ts";
import { fireSchedule } from "./fire.ts";
import type { FireSchedule } from "./fire.ts";
import { pauseSchedule, putSchedule, removeSchedule } from "./put.ts";
import type { PutScheduleOutcome } from "./put.ts";
import { listSchedules, readSchedule } from "./read.ts";
import type { Schedule } from "./schedule-row.ts";
import { RunningScheduler } from "./scheduler.ts";
import type { ScheduleRunOptions, Scheduler } from "./scheduler.ts";

/** What schedules take from their surroundings; the database's unless told. */
export interface ScheduleEnvironment {
  readonly clock?: Clock;
}

/** What happens again and again, at instants that each fire once. */
export interface Schedules {
  /**
   * Makes a schedule of a kind, changes its terms, or resumes a paused one;
   * with the terms it has, it goes on as it is. Any kind but `trigger`, whose
   * schedules belong to subscriptions and can only be read here.
   * @throws HoldfastError `NAME_INVALID`, `CRON_INVALID`, `TIME_ZONE_INVALID`, `INTERVAL_INVALID`
   * @example await schedules.put("report", "daily", { cron: "0 9 * * 1-5", timeZone: "Europe/Berlin" });
   */
  put(
    kind: string,
    name: string,
    draft: ScheduleDraft,
    wait?: WaitOptions,
  ): Promise<PutScheduleOutcome>;
  /** Stops a schedule until it is put again; instants in between do not fire. True when it was running. */
  pause(kind: string, name: string, wait?: WaitOptions): Promise<boolean>;
  /** True when there was one. */
  remove(kind: string, name: string, wait?: WaitOptions): Promise<boolean>;
  /** @throws HoldfastError `CORRUPT_ROW` */
  get(
    kind: string,
    name: string,
    wait?: WaitOptions,
  ): Promise<Schedule | undefined>;
  /** A page of the schedules of a kind, by name. What cannot be read is named. */
  list(kind: string, options?: PageOptions): Promise<Page<Schedule>>;
  /** The next instants that a schedule would have: 10 after now unless told, 1,000 at most. */
  upcoming(
    draft: ScheduleDraft,
    options?: { readonly after?: number; readonly limit?: number },
  ): readonly number[];
  /**
   * Fires schedules of the kinds given, each by its own part of a transaction,
   * until it is closed. The transaction that fires an instant also moves the
   * schedule on, so each instant is fired once however many processes run this.
   * It is serializable by default, so what a part selects is still so when it
   * commits.
   * @example const running = schedules.run({ report: (due) => startReport(due) });
   */
  run(
    fire: Readonly<Record<string, FireSchedule>>,
    options?: ScheduleRunOptions,
  ): Scheduler;
}

export function schedules(
  database: Database,
  environment?: ScheduleEnvironment,
): Schedules {
  const { clock: own } = givenDatabase(database);
  const { clock = own } = optionsOf(environment);
  const now = (): number => clock.now();
  return {
    async put(kind, name, draft, wait) {
      const input = {
        ...checkedOwnName(kind, name),
        ...checkedTerms(draft, clock.now()),
        now,
      };
      return database.write(putSchedule, input, wait);
    },
    async pause(kind, name, wait) {
      const input = { ...checkedOwnName(kind, name), now };
      return database.write(pauseSchedule, input, wait);
    },
    async remove(kind, name, wait) {
      return database.write(removeSchedule, checkedOwnName(kind, name), wait);
    },
    async get(kind, name, wait) {
      return database.read(readSchedule, checkedName(kind, name), wait);
    },
    async list(kind, options) {
      const { after = "", limit, ...wait } = optionsOf(options);
      const input = {
        kind: checkedKind(kind),
        after: checkedFilterText("after", after),
        limit: checkedLimit(limit),
      };
      return database.read(listSchedules, input, wait);
    },
    upcoming(draft, options) {
      const known = ["after", "limit"] as const;
      const { after = clock.now(), limit = 10 } = optionsOf(options, known);
      const { cadence } = checkedTerms(draft, clock.now());
      const instants = instantsOf(cadence);
      const found: number[] = [];
      const max = checkedLimit(limit);
      for (let last = checkedInstant("after", after); found.length < max;) {
        const next = instants.next(last);
        if (next === undefined) break;
        found.push((last = next));
      }
      return found;
    },
    run(fire, options) {
      for (const [kind, each] of Object.entries(givenObject("fire", fire))) {
        refuseReserved(kind);
        if (typeof each !== "function")
          throw new HoldfastError(
            "OPTION_INVALID",
            `What fires schedules of kind "${kind}" is a generator function: function* (due) { … }.`,
            { option: "fire", kind },
          );
      }
      const { isolation: given, ...rest } = optionsOf(options);
      const isolation = givenIsolation(given);
      return new RunningScheduler(
        { database, clock, firing: fireSchedule, isolation },
        fire,
        checkedSchedulerOptions(rest),
      );
    },
  };
}
