import { HoldfastError } from "../../model/errors.ts";
import { safely } from "../../model/safely.ts";
import { draftOf, givenList } from "../../model/shape.ts";
import { overlaps, parseRunScheduleName, type Overlap } from "../../model/trigger/run-schedule.ts";
import type { ScheduleDraft } from "../../model/trigger/schedule-cadence.ts";
import type { TakesNone } from "../definition/workflow-context.ts";
import { newTerms } from "../../stores/schedule/parts.ts";
import {
  definitionOf,
  isDurableFunction,
  type Definition,
  type DurableFunction,
} from "../definition/definitions.ts";

/** The cadence of a schedule, `cron` with `timeZone` or `every`, and its rules for overlapping runs and missed instants. */
export type ScheduleOptions = ScheduleDraft & {
  /**
   * The rule for an instant at which a run of this schedule is unfinished. `skip`, the default,
   * starts none. `queue`, the default with `catchUp: "all"`, starts the run when earlier runs
   * have ended, in order; at most 100 wait. `allow` starts it at once, beside the other.
   * `cancelPrevious` asks the other to cancel and starts the new run when that has ended; of
   * several waiting instants the newest starts. The rule holds for missed instants too: with an
   * explicit `skip`, `catchUp: "all"` makes up only for instants without an unfinished run.
   */
  readonly overlap?: Overlap;
};

/** A schedule and the function it starts, to be given to `holdfast.work`. Made by `schedule`. */
export interface ScheduledFunction {
  readonly kind: "schedule";
  readonly name: string;
}

/** A schedule as the runtime knows it. */
export interface ScheduleDefinition {
  readonly name: string;
  readonly draft: ScheduleDraft;
  readonly overlap: Overlap;
  readonly function: Definition;
  readonly input: unknown;
}

/** The input of a function; optional if the function takes none. */
type InputOf<In> =
  TakesNone<In> extends true
    ? [input?: undefined]
    : undefined extends In
      ? [input?: NoInfer<In>]
      : [input: NoInfer<In>];

// Not a private field: an app may have two copies of the package, one bundled.
const scheduled: unique symbol = Symbol.for("holdfast.schedule") as never;

/**
 * Makes a schedule that starts runs of a workflow or an activity: one run per instant, for any
 * number of processes. Give it to `holdfast.work`; another process may execute the function.
 * Its runs are named after it, such as `nightly@2026-11-18T09:00:00Z`, and are found by
 * `runs.list({ tag: "schedule:nightly" })`. Cron expressions use UTC by default.
 *
 * @throws HoldfastError `NAME_INVALID`, `OPTION_INVALID`, `CRON_INVALID`, `TIME_ZONE_INVALID`, `INTERVAL_INVALID`, `DURATION_INVALID`, `TIME_OUT_OF_RANGE`
 * @example
 * await holdfast.work([report, schedule("nightly", { cron: "0 2 * * *", timeZone: "Europe/Berlin" }, report, { days: 1 })]);
 */
export function schedule<In, Out>(
  name: string,
  options: ScheduleOptions,
  fn: DurableFunction<In, Out>,
  ...[input]: InputOf<In>
): ScheduledFunction {
  const { overlap: chosen, ...draft } = draftOf<ScheduleTerms>(
    "the schedule",
    options,
    optionNames as readonly (keyof ScheduleTerms)[],
  );
  const overlap = chosen === undefined ? defaultOverlap(draft) : chosen;
  if (!overlaps.includes(overlap))
    throw new HoldfastError("OPTION_INVALID", `overlap must be one of ${overlaps.join(", ")}.`, {
      option: "overlap",
    });
  // Errors in the terms are reported at this line of the user's code. The clock of the database
  // sets the instants.
  newTerms(draft as ScheduleDraft, 0);
  const made: ScheduleDefinition = {
    name: parseRunScheduleName(name),
    draft: draft as ScheduleDraft,
    overlap,
    function: definitionOf(fn, "the function of the schedule"),
    input,
  };
  return Object.freeze({
    kind: "schedule",
    name: made.name,
    [scheduled]: made,
  });
}

type ScheduleTerms = Pick<ScheduleOptions, "overlap" | "catchUp">;

/** The default overlap rule. Instants that are caught up come all at once: `skip` would drop all but the first. */
function defaultOverlap({ catchUp }: ScheduleTerms): Overlap {
  return catchUp === "all" ? "queue" : "skip";
}

const optionNames: readonly string[] = [
  "cron",
  "timeZone",
  "every",
  "from",
  "catchUp",
  "catchUpMax",
  "overlap",
];

/** Returns the definition of a schedule; undefined for any other value. */
function scheduleOf(given: unknown): ScheduleDefinition | undefined {
  if (typeof given !== "object" || given === null) return undefined;
  return safely(
    () => (given as { readonly [scheduled]?: ScheduleDefinition })[scheduled],
    undefined,
  );
}

/** True for a result of `schedule`. */
export function isScheduled(given: unknown): given is ScheduledFunction {
  return scheduleOf(given) !== undefined;
}

/** A workflow, an activity or a schedule. */
export type Worked = DurableFunction<never, unknown> | ScheduledFunction;

/** Returns the functions and schedules given to `work`, one or a list. @throws HoldfastError `OPTION_INVALID` */
export function givenWork(given: Worked | readonly Worked[]): readonly Worked[] {
  const isOne = (each: unknown): each is Worked => isDurableFunction(each) || isScheduled(each);
  return isOne(given) ? [given] : givenList("functions", given);
}

/** Collects schedules by name. @throws HoldfastError `SCHEDULE_CONFLICT` when two different schedules share a name. */
export function schedulesOf(given: readonly unknown[]): ReadonlyMap<string, ScheduleDefinition> {
  const byName = new Map<string, ScheduleDefinition>();
  for (const each of given) {
    const made = scheduleOf(each);
    if (made === undefined) continue;
    const before = byName.get(made.name);
    if (before !== undefined && before !== made) throw scheduleConflict(made);
    byName.set(made.name, made);
  }
  return byName;
}

export function scheduleConflict({ name }: ScheduleDefinition): HoldfastError {
  return new HoldfastError(
    "SCHEDULE_CONFLICT",
    `Two different schedules named "${name}" were passed to work(). ` +
      "Each instant starts a run that is named after its schedule, so each schedule needs its own name. Rename one of them.",
    { name },
  );
}
