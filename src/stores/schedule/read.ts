import { row, rows, plainOperation } from "../../sql/operation.ts";
import type { Operation } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { sift } from "../damage.ts";
import type { Page } from "../list.ts";
import { scheduleColumns, scheduleOf } from "./schedule-row.ts";
import type { Schedule, ScheduleName, ScheduleRow } from "./schedule-row.ts";

/** @throws HoldfastError `CORRUPT_ROW` */
export const readSchedule: Operation<ScheduleName, Schedule | undefined> =
  plainOperation("readSchedule", {
    key: (input: ScheduleName) => input.name,
    *one({ kind, name }) {
      const found = yield* row<ScheduleRow>(sql`
        SELECT ${scheduleColumns} FROM holdfast_schedule WHERE kind = ${kind} AND name = ${name}`);
      return found && scheduleOf(found);
    },
  });

export interface ListSchedules {
  readonly kind: string;
  /** The name of the last one of the page before. */
  readonly after: string;
  readonly limit: number;
}

/** A page of the schedules of a kind, by name. */
export const listSchedules: Operation<
  ListSchedules,
  Page<Schedule>
> = plainOperation("listSchedules", {
  key: (input: ListSchedules) => input.kind,
  *one({ kind, after, limit }) {
    const found = yield* rows<ScheduleRow>(sql`
        SELECT ${scheduleColumns} FROM holdfast_schedule
        WHERE kind = ${kind} AND name > ${after} ORDER BY name LIMIT ${limit + 1}`);
    const page = found.slice(0, limit);
    return {
      ...sift("holdfast_schedule", page, keyOf, scheduleOf),
      next: found.length > limit ? page.at(-1)?.name : undefined,
    };
  },
});

function keyOf({ key }: ScheduleRow): string {
  return String(key);
}
