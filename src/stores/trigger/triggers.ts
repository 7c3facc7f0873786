import type { Database } from "../../sql/database.ts";
import type { StoreEnvironment } from "../execution/context.ts";
import { checkedSchedulerOptions } from "../schedule/checks.ts";
import { fireOwnSchedule } from "../schedule/fire.ts";
import { RunningScheduler } from "../schedule/scheduler.ts";
import type { Scheduler, SchedulerOptions } from "../schedule/scheduler.ts";
import { givenDatabase } from "../given.ts";
import { triggerSurroundings } from "./context.ts";
import { fireTrigger } from "./fire.ts";
import { occurrences } from "./recording.ts";
import type { Occurrences } from "./recording.ts";
import { triggerSchedules } from "../../model/trigger.ts";
import { optionsOf } from "../../model/shape.ts";
import { subscriptions } from "./subscribing.ts";
import type { Subscriptions } from "./subscribing.ts";

/** What starts processes: things that happen, and schedules. */
export interface Triggers extends Subscriptions, Occurrences {
  /**
   * Fires the schedules of subscriptions until it is closed: each instant
   * once, however many processes run this. The value of what was fired is what
   * `record` would have answered.
   * @example await using running = triggers.run({ onError: (error) => log(error) });
   */
  run(options?: SchedulerOptions): Scheduler;
}

/**
 * Triggers: subscriptions to sources and schedules, and the processes that
 * occurrences start. Holds nothing but schedulers that were started, so there
 * may be any number of these over one database.
 */
export function triggers(
  database: Database,
  environment?: StoreEnvironment,
): Triggers {
  const around = triggerSurroundings(
    givenDatabase(database),
    optionsOf(environment),
  );
  const { clock, codec } = around;
  return {
    ...subscriptions(around),
    ...occurrences(around),
    run: (options) =>
      new RunningScheduler(
        { database, clock, firing: fireOwnSchedule },
        { [triggerSchedules]: (due) => fireTrigger(codec, due) },
        checkedSchedulerOptions(options),
      ),
  };
}
