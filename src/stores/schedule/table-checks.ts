import { runSchedules } from "../../model/trigger/run-schedule.ts";
import { textsOf } from "../../sql/dialect.ts";
import { rows } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { byKey, distinct, tableCheck } from "../table-check.ts";
import type { TableCheck } from "../table-check.ts";
import { functionOf, functionTable, type FunctionRow } from "./runs/function-row.ts";
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

const scheduledFunction = tableCheck<FunctionRow>({
  table: functionTable,
  select: sql`
    SELECT t.key, t.name, t.role, t.function, t.input, t.input_hash, t.overlap, t.is_paused, t.last_run, t.skips,
      t.skipped_at, t.skip_reason, t.changed_at`,
  from: sql`FROM holdfast_schedule_function t`,
  ...byKey,
  weight: sql`length(t.input)`,
  keyOf: ({ name }) => name,
  judge(row, { decode, agrees }) {
    functionOf(row);
    return agrees("execution", 1, decode(row.input), row.input_hash)
      ? undefined
      : "Its input does not match its hash.";
  },
  *partners(found) {
    const names = distinct(found, ({ name }) => name);
    const there = yield* rows<{ readonly name: string }>(sql`
      SELECT name FROM holdfast_schedule WHERE kind = ${runSchedules} AND name IN ${textsOf(names)}`);
    const known = new Set(there.map(({ name }) => name));
    return ({ name }) => (known.has(name) ? undefined : "It belongs to no schedule.");
  },
});

interface RunRow {
  readonly schedule: number;
  readonly run: string;
  readonly function_name: string | null;
}

const scheduledRun = tableCheck<RunRow>({
  table: "holdfast_schedule_run",
  select: sql`SELECT t.schedule, t.run, f.name AS function_name`,
  from: sql`FROM holdfast_schedule_run t LEFT JOIN holdfast_schedule_function f ON f.key = t.schedule`,
  order: sql`t.schedule, t.run`,
  behind: ({ schedule: last, run }) =>
    sql`(t.schedule > ${last} OR (t.schedule = ${last} AND t.run > ${run}))`,
  keyOf: ({ run }) => run,
  judge({ run, function_name: name }) {
    if (name === null) return "It belongs to no schedule.";
    return run.startsWith(`${name}@`) ? undefined : "It is named after another schedule.";
  },
});

export const scheduleChecks: readonly TableCheck[] = [schedule, scheduledFunction, scheduledRun];
