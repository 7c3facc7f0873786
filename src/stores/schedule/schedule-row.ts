import { HoldfastError } from "../../model/errors.ts";
import type { Cadence } from "../../model/trigger/schedule-cadence.ts";
import { catchUps, type CatchUp, type SkippedInstants } from "../../model/trigger/schedule-plan.ts";
import type { Tx } from "../../sql/operation.ts";
import { sql, type Statement } from "../../sql/statement.ts";
import { parseCadence } from "./cadence.ts";

/**
 * The topic of schedulers: a schedule of the kind that the key names may be due at another time.
 */
export const scheduleChanged = "schedule.changed";

/** The name of a schedule: its kind, and its name within that kind. */
export interface ScheduleName {
  readonly kind: string;
  readonly name: string;
}

export interface Schedule extends ScheduleName {
  readonly cadence: Cadence;
  readonly catchUp: CatchUp;
  /** The largest number of instants that `all` fires after a time without a scheduler. */
  readonly catchUpMax: number;
  /** The number of changes to its terms. */
  readonly revision: number;
  /** The instant that fires next; null while it is paused, or when none will come. */
  readonly nextAt: number | null;
  /** The last fired instant, and the time at which it fired. */
  readonly lastAt: number | null;
  readonly firedAt: number | null;
  /** The last skipped instants. */
  readonly skipped: SkippedInstants | null;
  /** The number of failed attempts at the next instant, and the code of the last one. */
  readonly failures: number;
  readonly failure: string | null;
  readonly changedAt: number;
}

/** A schedule at one of its instants. */
export interface DueInstant extends ScheduleName {
  /** The scheduled instant: the same for every process that fires it, however late. */
  readonly instant: number;
  /** The instant at which it actually fires. */
  readonly at: number;
  /** Earlier instants that will not fire. */
  readonly skipped: SkippedInstants | undefined;
}

/**
 * The part of the transaction that advances a schedule to its next instant. It may not change that
 * schedule.
 */
export type FireSchedule<T = unknown> = (due: DueInstant) => Tx<T>;

/** A fired instant, and its outcome. */
export interface FiredInstant extends DueInstant {
  readonly value: unknown;
}

export interface SchedulerOptions {
  readonly signal?: AbortSignal;
  readonly onFired?: (fired: FiredInstant) => void;
  /** Called for instants that the catch-up policy skips. */
  readonly onSkipped?: (schedule: ScheduleName, skipped: SkippedInstants) => void;
  /** Called for errors, with the schedule if the error concerns one. The scheduler retries. */
  readonly onError?: (error: unknown, schedule?: ScheduleName) => void;
}

/**
 * Fires schedules while it runs, and keeps its process alive. Any number of schedulers may run, in
 * any number of processes.
 */
export interface Scheduler {
  /**
   * Resolves when it has stopped: closed, aborted, or its database was closed or must be reopened.
   */
  readonly stopped: Promise<void>;
  /** Stops it after the instants that are firing now. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface ScheduleRow extends ScheduleName {
  readonly key: number;
  readonly cadence: string;
  readonly catch_up: string;
  readonly catch_up_max: number;
  readonly revision: number;
  readonly next_at: number | null;
  readonly last_at: number | null;
  readonly fired_at: number | null;
  readonly skipped_from: number | null;
  readonly skipped_before: number | null;
  readonly failures: number;
  readonly failure: string | null;
  readonly changed_at: number;
}

export const scheduleColumns: Statement = sql`
  key, kind, name, cadence, catch_up, catch_up_max, revision, next_at, last_at, fired_at,
  skipped_from, skipped_before, failures, failure, changed_at`;

/** @throws HoldfastError `CORRUPT_ROW` */
export function scheduleOf(found: ScheduleRow): Schedule {
  const cadence = parseCadence(found.cadence);
  const catchUp = catchUps.find((each) => each === found.catch_up);
  if (cadence === undefined || catchUp === undefined || found.catch_up_max < 1)
    throw new HoldfastError(
      "CORRUPT_ROW",
      `Schedule "${found.name}" of kind "${found.kind}" has terms that no operation of Holdfast writes. ` +
        "Put the schedule again, or delete the row with a database shell.",
      { table: "holdfast_schedule", key: String(found.key) },
    );
  const { skipped_from: from, skipped_before: before } = found;
  return {
    kind: found.kind,
    name: found.name,
    cadence,
    catchUp,
    catchUpMax: found.catch_up_max,
    revision: found.revision,
    nextAt: found.next_at,
    lastAt: found.last_at,
    firedAt: found.fired_at,
    skipped: from === null || before === null ? null : { from, before },
    failures: found.failures,
    failure: found.failure,
    changedAt: found.changed_at,
  };
}
