import { backoffMs, type SkippedInstants } from "../../model/trigger/schedule-plan.ts";
import { textsOf } from "../../sql/dialect.ts";
import {
  operation,
  plainOperation,
  rollbackWith,
  row,
  rows,
  run,
  type Operation,
  type OperationForms,
  type Tx,
} from "../../sql/operation.ts";
import { startedBody } from "../../sql/body.ts";
import { sql } from "../../sql/statement.ts";
import { undamaged } from "../damage.ts";
import {
  scheduleColumns,
  scheduleOf,
  type FireSchedule,
  type Schedule,
  type ScheduleName,
  type ScheduleRow,
} from "./schedule-row.ts";

export interface DueSchedules {
  readonly kinds: readonly string[];
  /** Only these schedules, if given. */
  readonly names?: readonly string[] | undefined;
  readonly now: number;
  readonly limit: number;
}

export interface DueSchedule {
  readonly key: number;
  readonly revision: number;
  readonly nextAt: number;
  readonly failures: number;
  readonly name: ScheduleName;
  /** Undefined for an unreadable row. */
  readonly schedule: Schedule | undefined;
}

export interface FoundDue {
  readonly due: readonly DueSchedule[];
  /** The instant at which the next one is due; undefined when none will be. */
  readonly earliest: number | undefined;
}

/**
 * Due schedules, longest waiting first. Reads the front of an index, independent of the number of
 * sleeping schedules.
 */
export const dueSchedules = plainOperation("dueSchedules", {
  key: (input) => input.kinds[0] ?? "",
  *one({ kinds, names, now, limit }: DueSchedules): Tx<FoundDue> {
    const isNamed = names === undefined ? sql`` : sql`AND name IN ${textsOf(names)}`;
    const found: (ScheduleRow & { readonly due_at: number })[] = [];
    for (const kind of kinds)
      found.push(
        ...(yield* rows<ScheduleRow & { readonly due_at: number }>(sql`
          SELECT ${scheduleColumns}, due_at FROM holdfast_schedule
          WHERE kind = ${kind} AND due_at IS NOT NULL ${isNamed} ORDER BY due_at, key LIMIT ${limit}`)),
      );
    const waiting = found.toSorted((a, b) => a.due_at - b.due_at);
    const due = waiting.filter(({ due_at: dueAt }) => dueAt <= now);
    return {
      due: due.slice(0, limit).map(dueSchedule),
      earliest: waiting[0]?.due_at,
    };
  },
});

function dueSchedule(found: ScheduleRow): DueSchedule {
  const { key, kind, name, revision, next_at: nextAt, failures } = found;
  return {
    key,
    revision,
    failures,
    nextAt: nextAt ?? 0,
    name: { kind, name },
    schedule: nextAt === null ? undefined : undamaged(() => scheduleOf(found)),
  };
}

/** A schedule as it was seen. If another process has advanced it since, that process was faster. */
interface SeenSchedule {
  readonly key: number;
  readonly name: ScheduleName;
  readonly revision: number;
  readonly nextAt: number;
}

export interface FireInput {
  readonly seen: SeenSchedule;
  /** Undefined when all due instants are skipped. */
  readonly instant: number | undefined;
  readonly skipped: SkippedInstants | undefined;
  /** The instant after it. */
  readonly following: number | null;
  readonly at: number;
  readonly fire: FireSchedule;
}

export type FireOutcome =
  | { readonly kind: "fired"; readonly value: unknown }
  /** Another process has advanced or changed it. */
  | { readonly kind: "overtaken" }
  /** It was changed while this fired, perhaps by the fired part. All of that was rolled back. */
  | { readonly kind: "contested" };

/**
 * Fires a schedule at an instant and advances it, both or neither. The row is not locked first, but
 * advances only if it is unchanged since it was seen. The fired part locks its own rows first, and
 * changes of a schedule hold those already.
 */
const fireForms: OperationForms<FireInput, FireOutcome> = {
  key: (input: FireInput) => input.seen.name.name,
  *one({ seen, instant, skipped, following, at, fire }) {
    if (following !== null && following <= (instant ?? seen.nextAt))
      throw new Error("A schedule moves on to a later instant.");
    const now = yield* row<Pick<ScheduleRow, "revision" | "next_at">>(sql`
      SELECT revision, next_at FROM holdfast_schedule WHERE key = ${seen.key}`);
    if (now?.revision !== seen.revision || now.next_at !== seen.nextAt)
      return { kind: "overtaken" };
    const value =
      instant === undefined
        ? undefined
        : yield* startedBody(`fire.${seen.name.kind}`, () =>
            fire({ ...seen.name, instant, at, skipped }),
          );
    const moved = yield* run(sql`
      UPDATE holdfast_schedule SET next_at = ${following}, due_at = ${following}, failures = 0, failure = NULL,
        last_at = COALESCE(${instant ?? null}, last_at),
        fired_at = COALESCE(${instant === undefined ? null : at}, fired_at),
        skipped_from = COALESCE(${skipped?.from ?? null}, skipped_from),
        skipped_before = COALESCE(${skipped?.before ?? null}, skipped_before)
      WHERE key = ${seen.key} AND revision = ${seen.revision} AND next_at = ${seen.nextAt}`);
    return moved === 0
      ? yield* rollbackWith({ kind: "contested" as const })
      : { kind: "fired", value };
  },
};

/** For parts of a user, which are serializable like all their bodies. */
export const fireSchedule: Operation<FireInput, FireOutcome> = operation("fireSchedule", fireForms);

/** For Holdfast's own parts. */
export const fireOwnSchedule: Operation<FireInput, FireOutcome> = plainOperation(
  "fireSchedule",
  fireForms,
);

/** Tests whether a schedule is unchanged since it was seen. */
export const standsAsSeen = plainOperation("standsAsSeen", {
  key: (input) => input.name.name,
  *one({ key, revision, nextAt }: SeenSchedule): Tx<boolean> {
    const found = yield* row(sql`
      SELECT key FROM holdfast_schedule
      WHERE key = ${key} AND revision = ${revision} AND next_at = ${nextAt}`);
    return found !== undefined;
  },
});

export interface PostponeInput {
  readonly seen: SeenSchedule & { readonly failures: number };
  readonly code: string;
  readonly at: number;
}

/**
 * Retries a schedule later, at the same instant, so that a failing schedule does not block the
 * others.
 */
export const postponeSchedule = plainOperation("postponeSchedule", {
  key: (input) => input.seen.name.name,
  *one({ seen: { key, revision, nextAt, failures }, code, at }: PostponeInput): Tx<void> {
    yield* run(sql`
      UPDATE holdfast_schedule SET due_at = ${at + backoffMs(failures)}, failures = failures + 1, failure = ${code}
      WHERE key = ${key} AND revision = ${revision} AND (next_at = ${nextAt} OR next_at IS NULL)
        AND due_at IS NOT NULL AND failures = ${failures}`);
  },
});
