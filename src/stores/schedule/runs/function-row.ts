import { corruptRow } from "../../../model/corrupt-row.ts";
import { HoldfastError } from "../../../model/errors.ts";
import type { ExecutionId } from "../../../model/ids/execution-id.ts";
import { parseFunctionName, type FunctionName } from "../../../model/ids/function-name.ts";
import {
  overlaps,
  runSchedules,
  skipReasons,
  type Overlap,
  type SkipReason,
} from "../../../model/trigger/run-schedule.ts";
import type { Encoded } from "../../../model/values/encoded.ts";
import { lockRow } from "../../../sql/dialect.ts";
import { row, run, type Tx } from "../../../sql/operation.ts";
import { sql, type Statement } from "../../../sql/statement.ts";
import type { ScheduleName } from "../schedule-row.ts";

/** The stored function of a schedule. */
export interface FunctionRow {
  readonly key: number;
  readonly name: string;
  readonly role: string;
  readonly function: string;
  readonly input: Encoded;
  readonly input_hash: string;
  readonly overlap: string;
  readonly is_paused: number;
  readonly last_run: ExecutionId | null;
  readonly skips: number;
  readonly skipped_at: number | null;
  readonly skip_reason: string | null;
  readonly changed_at: number;
}

export const functionTable = "holdfast_schedule_function";

const functionColumns: Statement = sql`
  key, name, role, function, input, input_hash, overlap, is_paused, last_run, skips, skipped_at, skip_reason, changed_at`;

/** The function of a schedule, and the outcome of its instants. */
export interface ScheduledState {
  readonly role: "workflow" | "activity";
  readonly function: FunctionName;
  readonly overlap: Overlap;
  readonly isPaused: boolean;
  readonly lastRun: ExecutionId | null;
  /** Instants that started nothing because of unfinished runs; null when there were none. */
  readonly skipped: {
    readonly count: number;
    /** The last skipped instant. */
    readonly instant: number;
    readonly reason: SkipReason;
  } | null;
}

/** @throws HoldfastError `CORRUPT_ROW`, `NAME_INVALID` */
export function functionOf(found: Omit<FunctionRow, "input">): ScheduledState {
  const { role, skips, skipped_at: skippedAt } = found;
  const overlap = overlaps.find((each) => each === found.overlap);
  const reason = skipReasons.find((each) => each === found.skip_reason);
  if (
    overlap === undefined ||
    (role !== "workflow" && role !== "activity") ||
    (skippedAt === null) !== (reason === undefined)
  )
    throw corruptRow(functionTable, found.name, "has unknown terms of a schedule");
  return {
    role,
    function: parseFunctionName(found.function),
    overlap,
    isPaused: found.is_paused === 1,
    lastRun: found.last_run,
    skipped:
      skippedAt === null || reason === undefined
        ? null
        : { count: skips, instant: skippedAt, reason },
  };
}

/** The scheduler's name for a schedule of runs. */
export function ofKindRun(name: string): ScheduleName {
  return { kind: runSchedules, name };
}

/** Locks the row until the transaction ends, before all other rows of the schedule. */
export function* lockedFunction(name: string): Tx<FunctionRow | undefined> {
  return yield* row<FunctionRow>(sql`
    SELECT ${functionColumns} FROM holdfast_schedule_function WHERE name = ${name} ${lockRow}`);
}

/** @throws HoldfastError `SCHEDULE_NOT_FOUND` */
export function* presentFunction(name: string): Tx<FunctionRow> {
  const found = yield* lockedFunction(name);
  if (found !== undefined) return found;
  throw new HoldfastError(
    "SCHEDULE_NOT_FOUND",
    `Schedule "${name}" does not exist. holdfast.schedules.list() lists the existing ones; to create it, pass it to holdfast.work.`,
    { name },
  );
}

/** Counts instants that started nothing, and records the last one. */
export function* countSkips(
  key: number,
  count: number,
  instant: number,
  reason: SkipReason,
): Tx<void> {
  yield* run(sql`
    UPDATE holdfast_schedule_function SET skips = skips + ${count}, skipped_at = ${instant}, skip_reason = ${reason}
    WHERE key = ${key}`);
}
