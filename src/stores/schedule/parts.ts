import { instantOf } from "../../model/time/clock.ts";
import { HoldfastError } from "../../model/errors.ts";
import type { Cadence, ScheduleDraft } from "../../model/trigger/schedule-cadence.ts";
import { catchUps } from "../../model/trigger/schedule-plan.ts";
import { checkedCount, checkedText, draftOf } from "../../model/shape.ts";
import { runSchedules } from "../../model/trigger/run-schedule.ts";
import { triggerSchedules } from "../../model/trigger/trigger.ts";
import type { WaitOptions } from "../../sql/database.ts";
import { lockRow, textsOf } from "../../sql/dialect.ts";
import { announce, row, run, storeOperation, type Tx } from "../../sql/operation.ts";
import { sql, type Statement } from "../../sql/statement.ts";
import type { StoreContext } from "../context.ts";
import { onlyWait, type Call } from "../method.ts";
import { cadenceOf, cadenceText, instantsOf, parseCadence } from "./cadence.ts";
import {
  scheduleChanged,
  scheduleColumns,
  scheduleOf,
  type Schedule,
  type ScheduleName,
  type ScheduleRow,
} from "./schedule-row.ts";

/**
 * Changes of schedules, by the methods of `schedules` and as part of changes of the subscription
 * that a schedule belongs to.
 */

const nameCharactersMax = 512;
const catchUpMaxDefault = 100;
const catchUpMaxMax = 1_000;

/** @throws HoldfastError `NAME_INVALID` */
export function scheduleNamed(kind: string, name: string): ScheduleName {
  return {
    kind: checkedKind(kind),
    name: checkedText("The name of a schedule", name, nameCharactersMax),
  };
}

/** @throws HoldfastError `NAME_INVALID` */
export function checkedKind(kind: string): string {
  return checkedText("The kind of a schedule", kind);
}

/** Kinds that are changed and fired elsewhere, and the place to do it. */
const reserved: Readonly<Record<string, string>> = {
  [triggerSchedules]:
    "those belong to subscriptions, and triggers fire them. Change the subscription",
  [runSchedules]:
    "those start runs, and workers fire them. Change what is given to holdfast.work, use holdfast.schedules",
};

/**
 * Refuses the kinds of schedules that belong to subscriptions and workers.
 * @throws HoldfastError `NAME_INVALID` for the kinds of schedules that subscriptions and workers have.
 */
export function refuseReserved(kind: string): void {
  const why =
    typeof kind === "string" && Object.hasOwn(reserved, kind) ? reserved[kind] : undefined;
  if (why === undefined) return;
  const what = "The kind of a schedule";
  throw new HoldfastError(
    "NAME_INVALID",
    `${what} cannot be "${kind}" here: ${why}, or use another kind.`,
    { what, kind },
  );
}

/** The complete terms of a schedule. */
export interface NewTerms extends Pick<Schedule, "cadence" | "catchUp" | "catchUpMax"> {
  /** True when an interval of equal length keeps its anchor. */
  readonly keepsAnchor: boolean;
}

/**
 * @throws HoldfastError `OPTION_INVALID`, `CRON_INVALID`, `TIME_ZONE_INVALID`,
 *   `INTERVAL_INVALID`, `DURATION_INVALID`, `TIME_OUT_OF_RANGE`
 */
export function newTerms(draft: ScheduleDraft, now: number): NewTerms {
  draftOf<Readonly<Record<string, unknown>>>("the schedule", draft, [
    "cron",
    "timeZone",
    "every",
    "from",
    "catchUp",
    "catchUpMax",
  ]);
  const cadence = cadenceOf(draft, now);
  const { catchUp = "latest", catchUpMax = catchUpMaxDefault } = draft;
  if (!catchUps.includes(catchUp))
    throw new HoldfastError("OPTION_INVALID", `catchUp must be one of ${catchUps.join(", ")}.`, {
      option: "catchUp",
    });
  return {
    cadence,
    catchUp,
    catchUpMax: checkedCount("catchUpMax", catchUpMax, {
      min: 1,
      max: catchUpMaxMax,
    }),
    keepsAnchor: "every" in draft && draft.from === undefined,
  };
}

/** The clock, read once a schedule is locked. */
type InTime = Pick<StoreContext, "clock">;

interface PutSchedule extends ScheduleName, NewTerms {}

interface PutScheduleOutcome {
  /** False when it had these terms already and was not paused. */
  readonly isChanged: boolean;
  readonly revision: number;
  readonly nextAt: number | null;
}

export function givenPut(
  { clock }: StoreContext,
  kind: string,
  name: string,
  draft: ScheduleDraft,
  wait?: WaitOptions,
): Call<PutSchedule> {
  const { input } = givenChange(undefined, kind, name);
  return {
    input: { ...input, ...newTerms(draft, clock.now()) },
    wait: onlyWait(wait),
  };
}

/** The schedule to change. @throws HoldfastError `NAME_INVALID` */
export function givenChange(
  _: unknown,
  kind: string,
  name: string,
  wait?: WaitOptions,
): Call<ScheduleName> {
  refuseReserved(kind);
  return { input: scheduleNamed(kind, name), wait: onlyWait(wait) };
}

/**
 * Creates a schedule, changes its terms, or resumes it. With unchanged terms it keeps its next
 * instant. Its next instant is after now and after the last fired one, so a clock that was set back
 * does not fire it again. Instants that were due under the old terms are reported as skipped.
 */
export const putSchedule = storeOperation("putSchedule", {
  key: (input) => input.name,
  *one(context: InTime, input: PutSchedule): Tx<PutScheduleOutcome> {
    const { kind, catchUp, catchUpMax } = input;
    const first = yield* insertSchedule(context, input);
    if (first !== undefined) return first;
    const old = yield* lockedSchedule(input);
    // Removed in between, which only a transaction can do that holds the owner of the schedule.
    if (old === undefined) return yield* putSchedule(context)(input);
    const cadence = goingOn(input, old);
    const text = cadenceText(cadence);
    if (isSame(input, old) && old.next_at !== null)
      return {
        isChanged: false,
        revision: old.revision,
        nextAt: old.next_at,
      };
    // Another transaction may have held the lock for long.
    const at = instantOf(() => context.clock.now());
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

/** Inserts a schedule; undefined when it exists already. */
function* insertSchedule(
  { clock }: InTime,
  { kind, name, cadence, catchUp, catchUpMax }: PutSchedule,
): Tx<PutScheduleOutcome | undefined> {
  const at = instantOf(() => clock.now());
  const first = instantsOf(cadence).next(at) ?? null;
  const inserted = yield* run(sql`
    INSERT INTO holdfast_schedule
      (kind, name, cadence, catch_up, catch_up_max, revision, next_at, due_at, failures, changed_at)
    VALUES (${kind}, ${name}, ${cadenceText(cadence)}, ${catchUp}, ${catchUpMax}, 1, ${first}, ${first}, 0, ${at})
    ON CONFLICT (kind, name) DO NOTHING`);
  if (inserted === 0) return undefined;
  yield* announce(scheduleChanged, kind);
  return { isChanged: true, revision: 1, nextAt: first };
}

/** Records the due instants that have not fired. Without any, the earlier record stays. */
function passedOver(at: number): Statement {
  return sql`
    skipped_from = CASE WHEN next_at <= ${at} THEN next_at ELSE skipped_from END,
    skipped_before = CASE WHEN next_at <= ${at} THEN ${at + 1} ELSE skipped_before END`;
}

/** Tests whether a schedule has these terms, paused or not. */
export function* hasTerms(name: ScheduleName, terms: NewTerms): Tx<boolean> {
  const found = yield* lockedSchedule(name);
  return found !== undefined && isSame(terms, found);
}

function isSame(terms: NewTerms, old: ScheduleRow): boolean {
  return (
    old.cadence === cadenceText(goingOn(terms, old)) &&
    old.catch_up === terms.catchUp &&
    old.catch_up_max === terms.catchUpMax
  );
}

function goingOn({ cadence, keepsAnchor }: NewTerms, { cadence: text }: ScheduleRow): Cadence {
  const old = parseCadence(text);
  return keepsAnchor &&
    cadence.kind === "interval" &&
    old?.kind === "interval" &&
    old.everyMs === cadence.everyMs
    ? old
    : cadence;
}

function* lockedSchedule({ kind, name }: ScheduleName): Tx<ScheduleRow | undefined> {
  return yield* row<ScheduleRow>(sql`
    SELECT ${scheduleColumns} FROM holdfast_schedule
    WHERE kind = ${kind} AND name = ${name} ${lockRow}`);
}

/**
 * Pauses a schedule until it is put again. Instants that pass in between do not fire, and due ones
 * are reported as skipped. True when it was running.
 */
export const pauseSchedule = storeOperation("pauseSchedule", {
  key: (input) => input.name,
  *one({ clock }: InTime, name: ScheduleName): Tx<boolean> {
    const found = yield* lockedSchedule(name);
    if (found === undefined || found.next_at === null) return false;
    const at = instantOf(() => clock.now());
    yield* run(sql`
      UPDATE holdfast_schedule SET next_at = NULL, due_at = NULL, ${passedOver(at)}, revision = revision + 1,
        failures = 0, failure = NULL, changed_at = ${at}
      WHERE key = ${found.key}`);
    return true;
  },
});

/**
 * Resumes a paused schedule with its terms; true when it was paused.
 * @throws HoldfastError `CORRUPT_ROW`
 */
export const resumeSchedule = storeOperation("resumeSchedule", {
  key: (input) => input.name,
  *one(context: InTime, name: ScheduleName): Tx<boolean> {
    const found = yield* lockedSchedule(name);
    if (found === undefined || found.next_at !== null) return false;
    const { cadence, catchUp, catchUpMax } = scheduleOf(found);
    const terms = { cadence, catchUp, catchUpMax, keepsAnchor: true };
    yield* putSchedule(context)({ ...name, ...terms });
    return true;
  },
});

/** Removes a schedule; true when it existed. */
export const removeSchedule = storeOperation("removeSchedule", {
  key: (input) => input.name,
  *one(_: object, { kind, name }: ScheduleName): Tx<boolean> {
    const removed = yield* run(sql`
      DELETE FROM holdfast_schedule WHERE kind = ${kind} AND name = ${name}`);
    return removed > 0;
  },
});

/** Removes up to `rowsMax` schedules of a kind. Fewer means that none of them are left. */
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
