import type { WaitOptions } from "../../sql/database.ts";
import { lockRow } from "../../sql/dialect.ts";
import { row, rows, storeOperation, type Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import type { StoreContext } from "../context.ts";
import { list, pageOf, sliced, type List, type PageOptions } from "../list.ts";
import { onlyWait, type Call } from "../method.ts";
import { checkedKind, scheduleNamed } from "./parts.ts";
import {
  scheduleColumns,
  scheduleOf,
  type Schedule,
  type ScheduleName,
  type ScheduleRow,
} from "./schedule-row.ts";

export function givenRead(
  _: unknown,
  kind: string,
  name: string,
  wait?: WaitOptions,
): Call<ScheduleName> {
  return { input: scheduleNamed(kind, name), wait: onlyWait(wait) };
}

/** Locks the schedule that a read is about, if it exists. */
export function* lockReadSchedule({ kind, name }: ScheduleName): Tx<void> {
  yield* row(sql`
    SELECT key FROM holdfast_schedule WHERE kind = ${kind} AND name = ${name} ${lockRow}`);
}

/** @throws HoldfastError `CORRUPT_ROW` */
export const readSchedule = storeOperation("readSchedule", {
  key: (input) => input.name,
  *one(_: object, { kind, name }: ScheduleName): Tx<Schedule | undefined> {
    const found = yield* row<ScheduleRow>(sql`
      SELECT ${scheduleColumns} FROM holdfast_schedule WHERE kind = ${kind} AND name = ${name}`);
    return found && scheduleOf(found);
  },
});

/** The schedules of a kind, by name. */
export const scheduleList: List<StoreContext, [kind: string, options?: PageOptions], Schedule> =
  list("listSchedules", {
    table: "holdfast_schedule",
    given(_: StoreContext, kind: string, options?: PageOptions) {
      const { page } = pageOf(options, []);
      return { filter: { kind: checkedKind(kind) }, page };
    },
    slice: (_, { kind }, bounds) =>
      sliced(
        bounds,
        ({ name }: ScheduleRow) => [name],
        function* (after, count) {
          return yield* rows<ScheduleRow>(sql`
          SELECT ${scheduleColumns} FROM holdfast_schedule
          WHERE kind = ${kind} AND name > ${String(after?.[0] ?? "")} ORDER BY name LIMIT ${count}`);
        },
      ),
    keyOf: ({ key }) => String(key),
    itemOf: (_, found) => scheduleOf(found),
  });
