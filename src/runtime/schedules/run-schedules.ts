import { optionsOf } from "../../model/shape.ts";
import { firedRunId, parseRunScheduleName } from "../../model/trigger/run-schedule.ts";
import { lists, type Page, type PageOptions } from "../../stores/list.ts";
import {
  pauseRunSchedule,
  removeRunSchedule,
  resumeRunSchedule,
} from "../../stores/schedule/runs/change.ts";
import { runScheduleList, type RunSchedule } from "../../stores/schedule/runs/list.ts";
import { fireNow } from "../../stores/schedule/runs/start.ts";
import { runOf, type Run } from "../client/run-handle.ts";
import type { RuntimeContext } from "../runtime-context.ts";

/** The schedules that were given to `work`, in this or another process, now or before. */
export interface RunSchedules {
  /**
   * Lists all schedules by name, with their next five instants. A schedule that no code passes
   * to `work` any more stays in the list, overdue, and does not fire: remove it.
   * @throws HoldfastError `OPTION_INVALID`, `CURSOR_INVALID`
   * @example const { items } = await holdfast.schedules.list();
   */
  list(options?: PageOptions): Promise<Page<RunSchedule>>;
  /**
   * Pauses a schedule: it starts nothing, not even its waiting instants, until `resume`. A
   * restart of a worker does not change that. Started runs continue. True if the schedule was
   * not paused. May be repeated.
   * @throws HoldfastError `SCHEDULE_NOT_FOUND`, `NAME_INVALID`
   */
  pause(name: string): Promise<boolean>;
  /**
   * Resumes a schedule with its next instant after now. Instants that passed while it was
   * paused start nothing. True if it was paused. May be repeated.
   * @throws HoldfastError `SCHEDULE_NOT_FOUND`, `NAME_INVALID`
   */
  resume(name: string): Promise<boolean>;
  /**
   * Starts a run now, outside the cadence, even if the schedule is paused or has unfinished
   * runs. For later instants the run counts as a run of the schedule. Give a key to make the
   * call repeatable: repeated calls under one key fire once.
   * @throws HoldfastError `SCHEDULE_NOT_FOUND`, `NAME_INVALID`, `OPTION_INVALID`, `EXECUTION_EXISTS` when the schedule has changed its function or input since the key was used
   * @example const run = await holdfast.schedules.fire("nightly", { key: "after-the-fix" });
   */
  fire(
    name: string,
    options?: {
      /** 1 to 50 characters of A-Z, a-z, 0-9 and "_:/@-"; a new one by default. */
      readonly key?: string;
    },
  ): Promise<Run<unknown>>;
  /**
   * Removes a schedule with its waiting instants. Started runs continue. True if the schedule
   * existed. A worker that is given the schedule creates it again when it starts, so remove it
   * from the code first.
   * @throws HoldfastError `NAME_INVALID`
   */
  remove(name: string): Promise<boolean>;
}

export function runSchedulesOf(context: RuntimeContext): RunSchedules {
  const { database, store, clock, unserved } = context;
  const list = lists(store, runScheduleList);
  return {
    list: (options) => list(options),
    async pause(name) {
      const named = { name: parseRunScheduleName(name) };
      return await database.write(pauseRunSchedule(store), named);
    },
    async resume(name) {
      const named = { name: parseRunScheduleName(name) };
      return await database.write(resumeRunSchedule(store), named);
    },
    async fire(name, options) {
      const checked = parseRunScheduleName(name);
      const { key } = optionsOf<{ readonly key?: string }>(options, ["key"]);
      const run = firedRunId(
        checked,
        key === undefined ? store.ids.nextId("E").slice("E_".length) : key,
      );
      const input = { name: checked, run, at: clock.now() };
      const fired = await database.write(fireNow(store), input);
      unserved.started(fired.function);
      return runOf(context, fired.function, run);
    },
    async remove(name) {
      const named = { name: parseRunScheduleName(name) };
      return await database.write(removeRunSchedule(store), named);
    },
  };
}
