import { instantOf } from "../../model/clock.ts";
import type { Now } from "../../model/clock.ts";
import type { Cadence } from "../../model/schedule-cadence.ts";
import { lockRow, textsOf } from "../../sql/dialect.ts";
import { announce, row, run, plainOperation } from "../../sql/operation.ts";
import type { Operation, Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import type { Statement } from "../../sql/statement.ts";
import { cadenceText, instantsOf, parseCadence } from "./cadence.ts";
import { scheduleColumns, scheduleOf } from "./schedule-row.ts";
import type {
  ScheduleName,
  ScheduleRow,
  ScheduleTerms,
} from "./schedule-row.ts";
import { scheduleChanged } from "./topics.ts";

export interface PutSchedule extends ScheduleName, ScheduleTerms {
  /** True when an interval of equal length goes on from the anchor it has. */
  readonly keepsAnchor: boolean;
  readonly now: Now;
}

export interface PutScheduleOutcome {
  /** False when it had these terms already and was not paused. */
  readonly isChanged: boolean;
  readonly revision: number;
  readonly nextAt: number | null;
}

/**
 * Makes a schedule, changes its terms, or resumes it. With the terms that it
 * has it goes on as it is. Its next instant lies after now, and after the last
 * one that fired: a clock that was set back does not bring it again. Instants
 * that were due by the terms it had are named as skipped.
 */
export const putSchedule: Operation<PutSchedule, PutScheduleOutcome> =
  plainOperation("putSchedule", {
    key: (input: PutSchedule) => input.name,
    *one(input) {
      const { kind, name, catchUp, catchUpMax, now } = input;
      const begun = instantOf(now);
      const first = instantsOf(input.cadence).next(begun) ?? null;
      const inserted = yield* run(sql`
        INSERT INTO holdfast_schedule
          (kind, name, cadence, catch_up, catch_up_max, revision, next_at, due_at, failures, changed_at)
        VALUES (${kind}, ${name}, ${cadenceText(input.cadence)}, ${catchUp}, ${catchUpMax}, 1, ${first}, ${first}, 0, ${begun})
        ON CONFLICT (kind, name) DO NOTHING`);
      if (inserted > 0) {
        yield* announce(scheduleChanged, kind);
        return { isChanged: true, revision: 1, nextAt: first };
      }
      const old = yield* lockedSchedule(input);
      // Removed in the meantime, which only those can do who hold what it belongs to.
      if (old === undefined) return yield* putSchedule(input);
      const cadence = goingOn(input, old);
      const text = cadenceText(cadence);
      const isSame =
        old.cadence === text &&
        old.catch_up === catchUp &&
        old.catch_up_max === catchUpMax;
      if (isSame && old.next_at !== null)
        return {
          isChanged: false,
          revision: old.revision,
          nextAt: old.next_at,
        };
      // Whoever had it locked may have kept it for long.
      const at = instantOf(now);
      const after = Math.max(at, old.last_at ?? 0);
      const nextAt = instantsOf(cadence).next(after) ?? null;
      const revision = old.revision + 1;
      yield* run(sql`
        UPDATE holdfast_schedule SET cadence = ${text}, catch_up = ${catchUp}, catch_up_max = ${catchUpMax},
          revision = ${revision}, next_at = ${nextAt}, due_at = ${nextAt}, ${passedOver(at)},
          failures = 0, failure = NULL, changed_at = ${at}
        WHERE key = ${old.key}`);
      yield* announce(scheduleChanged, kind);
      return { isChanged: true, revision, nextAt };
    },
  });

/** Names what was due and has not fired; what was skipped before stays when nothing was. */
function passedOver(at: number): Statement {
  return sql`
    skipped_from = CASE WHEN next_at <= ${at} THEN next_at ELSE skipped_from END,
    skipped_before = CASE WHEN next_at <= ${at} THEN ${at + 1} ELSE skipped_before END`;
}

function goingOn(
  { cadence, keepsAnchor }: PutSchedule,
  { cadence: text }: ScheduleRow,
): Cadence {
  const old = parseCadence(text);
  return keepsAnchor &&
    cadence.kind === "interval" &&
    old?.kind === "interval" &&
    old.everyMs === cadence.everyMs
    ? old
    : cadence;
}

function* lockedSchedule({
  kind,
  name,
}: ScheduleName): Tx<ScheduleRow | undefined> {
  return yield* row<ScheduleRow>(sql`
    SELECT ${scheduleColumns} FROM holdfast_schedule
    WHERE kind = ${kind} AND name = ${name} ${lockRow}`);
}

export interface PauseSchedule extends ScheduleName {
  readonly now: Now;
}

/** Stops a schedule until it is put again: instants that pass meanwhile do not fire, and those that were due are named as skipped. True when it was running. */
export const pauseSchedule: Operation<PauseSchedule, boolean> = plainOperation(
  "pauseSchedule",
  {
    key: (input: PauseSchedule) => input.name,
    *one({ kind, name, now }) {
      const found = yield* lockedSchedule({ kind, name });
      if (found === undefined || found.next_at === null) return false;
      const at = instantOf(now);
      yield* run(sql`
        UPDATE holdfast_schedule SET next_at = NULL, due_at = NULL, ${passedOver(at)}, revision = revision + 1,
          failures = 0, failure = NULL, changed_at = ${at}
        WHERE key = ${found.key}`);
      return true;
    },
  },
);

/** Lets a paused schedule go on with the terms it has; true when it was paused. @throws HoldfastError `CORRUPT_ROW` */
export const resumeSchedule: Operation<PauseSchedule, boolean> = plainOperation(
  "resumeSchedule",
  {
    key: (input: PauseSchedule) => input.name,
    *one({ kind, name, now }) {
      const found = yield* lockedSchedule({ kind, name });
      if (found === undefined || found.next_at !== null) return false;
      const terms = scheduleOf(found);
      yield* putSchedule({ ...terms, keepsAnchor: true, now });
      return true;
    },
  },
);

/** Removes a schedule; true when there was one. */
export const removeSchedule: Operation<ScheduleName, boolean> = plainOperation(
  "removeSchedule",
  {
    key: (input: ScheduleName) => input.name,
    *one({ kind, name }) {
      const removed = yield* run(sql`
        DELETE FROM holdfast_schedule WHERE kind = ${kind} AND name = ${name}`);
      return removed > 0;
    },
  },
);

/** Removes at most so many schedules of a kind; fewer means that none of them is left. */
export function* forgetSchedules(
  kind: string,
  names: readonly string[],
  rowsMax: number,
): Tx<number> {
  return yield* run(sql`
    DELETE FROM holdfast_schedule WHERE key IN (
      SELECT key FROM holdfast_schedule
      WHERE kind = ${kind} AND name IN ${textsOf(names)} ORDER BY name LIMIT ${rowsMax})`);
}
