import { instantOf } from "../../../model/time/clock.ts";
import type { Overlap } from "../../../model/trigger/run-schedule.ts";
import type { Encoded } from "../../../model/values/encoded.ts";
import { announce, run, storeOperation, type Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import type { StoreContext } from "../../context.ts";
import {
  hasTerms,
  pauseSchedule,
  putSchedule,
  removeSchedule,
  resumeSchedule,
  type NewTerms,
} from "../parts.ts";
import { scheduleChanged } from "../schedule-row.ts";
import { lockedFunction, ofKindRun, presentFunction, type FunctionRow } from "./function-row.ts";

type InTime = Pick<StoreContext, "clock">;

export interface PutRunSchedule {
  readonly name: string;
  readonly terms: NewTerms;
  readonly role: "workflow" | "activity";
  readonly function: string;
  readonly input: Encoded;
  readonly inputHash: string;
  readonly overlap: Overlap;
}

/** The outcome of a put. */
type PutOutcome = "made" | "changed" | "same";

/**
 * Creates a schedule of runs, or changes its terms. With unchanged terms it keeps its next instant.
 * A paused schedule stays paused under any terms: only the caller that paused it resumes it.
 */
export const putRunSchedule = storeOperation("putRunSchedule", {
  key: (input) => input.name,
  *one(context: InTime, input: PutRunSchedule): Tx<PutOutcome> {
    const { name, role, overlap, inputHash, terms } = input;
    const at = instantOf(() => context.clock.now());
    const put = { ...ofKindRun(name), ...terms };
    const inserted = yield* run(sql`
      INSERT INTO holdfast_schedule_function
        (name, role, function, input, input_hash, overlap, is_paused, skips, changed_at)
      VALUES (${name}, ${role}, ${input.function}, ${input.input}, ${inputHash}, ${overlap}, 0, 0, ${at})
      ON CONFLICT (name) DO NOTHING`);
    if (inserted === 1) {
      yield* putSchedule(context)(put);
      return "made";
    }
    const old = yield* lockedFunction(name);
    // Removed in between.
    if (old === undefined) return yield* putRunSchedule(context)(input);
    const isSame = startsTheSame(input, old);
    if (!isSame)
      yield* run(sql`
        UPDATE holdfast_schedule_function SET role = ${role}, function = ${input.function}, input = ${input.input},
          input_hash = ${inputHash}, overlap = ${overlap}, changed_at = ${at}
        WHERE key = ${old.key}`);
    if (old.is_paused === 0) {
      const { isChanged } = yield* putSchedule(context)(put);
      return isSame && !isChanged ? "same" : "changed";
    }
    if (yield* hasTerms(put, terms)) return isSame ? "same" : "changed";
    yield* putSchedule(context)(put);
    yield* pauseSchedule(context)(put);
    return "changed";
  },
});

interface PutRunSchedules {
  readonly schedules: readonly PutRunSchedule[];
}

/** Puts all schedules or none. Returns the outcome of each, in the given order. */
export const putRunSchedules = storeOperation("putRunSchedules", {
  key: ({ schedules }) => schedules[0]?.name ?? "",
  *one(context: InTime, { schedules }: PutRunSchedules): Tx<readonly PutOutcome[]> {
    const outcomes = new Map<string, PutOutcome>();
    // Workers that start together put the same schedules. They lock them in one order, so no two
    // wait for each other.
    const ordered = schedules.toSorted((a, b) => (a.name < b.name ? -1 : 1));
    for (const each of ordered) outcomes.set(each.name, yield* putRunSchedule(context)(each));
    return schedules.map(({ name }) => outcomes.get(name) ?? "same");
  },
});

function startsTheSame(input: PutRunSchedule, old: FunctionRow): boolean {
  return (
    old.role === input.role &&
    old.function === input.function &&
    old.input_hash === input.inputHash &&
    old.overlap === input.overlap
  );
}

interface NamedSchedule {
  readonly name: string;
}

const keyOf = ({ name }: NamedSchedule): string => name;

/**
 * Pauses a schedule until it is resumed; waiting instants stay. True when it was running.
 * @throws HoldfastError `SCHEDULE_NOT_FOUND`
 */
export const pauseRunSchedule = storeOperation("pauseRunSchedule", {
  key: keyOf,
  *one(context: InTime, { name }: NamedSchedule): Tx<boolean> {
    const { key, is_paused: isPaused } = yield* presentFunction(name);
    if (isPaused === 1) return false;
    yield* run(sql`
      UPDATE holdfast_schedule_function SET is_paused = 1 WHERE key = ${key}`);
    yield* pauseSchedule(context)(ofKindRun(name));
    return true;
  },
});

/**
 * Resumes a schedule with its next instant after now. True when it was paused.
 * @throws HoldfastError `SCHEDULE_NOT_FOUND`
 */
export const resumeRunSchedule = storeOperation("resumeRunSchedule", {
  key: keyOf,
  *one(context: InTime, { name }: NamedSchedule): Tx<boolean> {
    const { key, is_paused: isPaused } = yield* presentFunction(name);
    if (isPaused === 0) return false;
    yield* run(sql`
      UPDATE holdfast_schedule_function SET is_paused = 0 WHERE key = ${key}`);
    const schedule = ofKindRun(name);
    yield* resumeSchedule(context)(schedule);
    // Also covers waiting instants, which are no longer in the cadence.
    yield* announce(scheduleChanged, schedule.kind);
    return true;
  },
});

/**
 * Removes a schedule with its waiting instants; true when it existed. Runs that it has started
 * continue.
 */
export const removeRunSchedule = storeOperation("removeRunSchedule", {
  key: keyOf,
  *one(context: object, { name }: NamedSchedule): Tx<boolean> {
    const found = yield* lockedFunction(name);
    if (found === undefined) return false;
    yield* run(sql`
      DELETE FROM holdfast_schedule_run WHERE schedule = ${found.key}`);
    yield* run(sql`
      DELETE FROM holdfast_schedule_function WHERE key = ${found.key}`);
    yield* removeSchedule(context)(ofKindRun(name));
    return true;
  },
});
