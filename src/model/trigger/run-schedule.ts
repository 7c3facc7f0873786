import { HoldfastError } from "../errors.ts";
import { executionIdFault, type ExecutionId } from "../ids/execution-id.ts";
import { excerpt } from "../values/excerpt.ts";
import { spokenKind } from "../values/spoken-kind.ts";

/** The kind of schedules that start runs. The runtime alone changes and fires them. */
export const runSchedules = "run";

/**
 * What happens at an instant while a run of the same schedule is unfinished:
 * `skip` starts none, `queue` starts one when those before it have ended,
 * `allow` starts one beside it, `cancelPrevious` asks the unfinished to cancel
 * and starts one when they have ended.
 */
export type Overlap = "skip" | "queue" | "allow" | "cancelPrevious";

export const overlaps: readonly Overlap[] = ["skip", "queue", "allow", "cancelPrevious"];

/** How many instants of a schedule wait at most; those that come then start nothing. */
export const waitingMax = 100;

/** Why an instant started nothing. */
export type SkipReason =
  /** A run of the schedule was unfinished. */
  | "unfinished"
  /** `waitingMax` instants waited already. */
  | "full"
  /** A later instant came before it could be started. */
  | "replaced"
  /** Another run has the id it was to get. */
  | "taken";

export const skipReasons: readonly SkipReason[] = ["unfinished", "full", "replaced", "taken"];

export type OverlapDecision =
  | { readonly kind: "start" }
  | { readonly kind: "wait" }
  /** Whatever is unfinished is asked to end, what waits gives way, and this waits for the end. */
  | { readonly kind: "cancel" }
  | { readonly kind: "skip"; readonly reason: SkipReason };

/** What an instant does, seeing how many runs of its schedule are unfinished and how many instants wait. */
export function decideOverlap(
  overlap: Overlap,
  { unfinished, waiting }: { unfinished: number; waiting: number },
): OverlapDecision {
  if (overlap === "allow" || unfinished + waiting === 0) return { kind: "start" };
  if (overlap === "cancelPrevious") return { kind: "cancel" };
  if (overlap === "skip") return { kind: "skip", reason: "unfinished" };
  return waiting < waitingMax ? { kind: "wait" } : { kind: "skip", reason: "full" };
}

const namePattern = /^[A-Za-z0-9_/-]{1,64}$/;

/** A name of which ids of runs can be made. @throws HoldfastError `NAME_INVALID` */
export function parseRunScheduleName(name: string): string {
  const isText = typeof name === "string";
  if (isText && namePattern.test(name) && executionIdFault(`${name}@1`) === undefined) return name;
  throw new HoldfastError(
    "NAME_INVALID",
    `The name of a schedule is 1 to 64 of A-Z, a-z, 0-9, "_", "/" and "-", such as "reports/nightly", and does not start with "E_" or "Delay_", ` +
      `since its runs are called after it; got ${isText ? excerpt(name) : spokenKind(name)}.`,
    isText ? { name: name.slice(0, 80) } : {},
  );
}

/** What is found with `runs.list({ tag })`. */
export function scheduleTag(name: string): string {
  return `schedule:${name}`;
}

/** The id of the run of an instant, such as `nightly@2026-11-18T09:00:00Z`. Ids have no dots, so what is below a second follows a `_`. */
export function instantRunId(name: string, instant: number): ExecutionId {
  return `${name}@${instantText(instant)}` as ExecutionId;
}

/** An instant as ids have it; the years after 9999 without their sign. */
export function instantText(instant: number): string {
  return new Date(instant).toISOString().replace(".000Z", "Z").replace(".", "_").replace("+", "");
}

const keyPattern = /^[A-Za-z0-9_:/@-]{1,50}$/;

/** The id of a run that somebody asked for, such as `nightly@fire:after-the-fix`. @throws HoldfastError `OPTION_INVALID` */
export function firedRunId(name: string, key: string): ExecutionId {
  if (typeof key === "string" && keyPattern.test(key)) return `${name}@fire:${key}` as ExecutionId;
  throw new HoldfastError(
    "OPTION_INVALID",
    `The key of a run that is fired is 1 to 50 of A-Z, a-z, 0-9 and "_:/@-"; got ${typeof key === "string" ? excerpt(key) : spokenKind(key)}.`,
    { option: "key" },
  );
}
