import { sql } from "../../sql/statement.ts";
import { byKey, tableCheck } from "../table-check.ts";
import type { TableCheck } from "../table-check.ts";
import { scheduleOf } from "./schedule-row.ts";
import type { ScheduleRow } from "./schedule-row.ts";

const schedule = tableCheck<ScheduleRow>({
  table: "holdfast_schedule",
  select: sql`
    SELECT t.key, t.kind, t.name, t.cadence, t.catch_up, t.catch_up_max, t.revision, t.next_at, t.due_at, t.last_at,
      t.fired_at, t.skipped_from, t.skipped_before, t.failures, t.failure, t.changed_at`,
  from: sql`FROM holdfast_schedule t`,
  ...byKey,
  keyOf: ({ key }) => String(key),
  judge(row) {
    scheduleOf(row);
    return undefined;
  },
});

export const scheduleChecks: readonly TableCheck[] = [schedule];
