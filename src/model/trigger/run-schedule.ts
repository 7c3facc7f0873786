import { HoldfastError } from "../errors.ts";
import { executionIdFault, type ExecutionId } from "../ids/execution-id.ts";
import { excerpt } from "../values/excerpt.ts";
import { spokenKind } from "../values/spoken-kind.ts";

/** The kind of schedules that start runs. Only the runtime changes and fires them. */
export const runSchedules = "run";

/**
 * The rule for an instant while a run of the same schedule is unfinished. `skip` starts none.
 * `queue` starts one when the earlier runs have ended. `allow` starts one beside it.
 * `cancelPrevious` requests cancellation of the unfinished runs and starts one when they have
 * ended.
 */
export type Overlap = "skip" | "queue" | "allow" | "cancelPrevious";

export const overlaps: readonly Overlap[] = ["skip", "queue", "allow", "cancelPrevious"];

/** The most instants of a schedule that wait. Further instants start nothing. */
export const waitingMax = 100;

/** The reason why an instant started nothing. */
export type SkipReason =
  /** A run of the schedule was unfinished. */
  | "unfinished"
  /** `waitingMax` instants were already waiting. */
  | "full"
  /** A later instant came before it could start. */
  | "replaced"
  /** Another run has the id of its run. */
  | "taken";

export const skipReasons: readonly SkipReason[] = ["unfinished", "full", "replaced", "taken"];

export type OverlapDecision =
  | { readonly kind: "start" }
  | { readonly kind: "wait" }
  /**
   * Unfinished runs are asked to end, waiting instants are dropped, and this instant waits for the
   * end.
   */
  | { readonly kind: "cancel" }
  | { readonly kind: "skip"; readonly reason: SkipReason };

/**
 * Decides what an instant does, from the numbers of unfinished runs and waiting instants of its
 * schedule.
 */
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

/** Checks a name from which ids of runs can be built. @throws HoldfastError `NAME_INVALID` */
export function parseRunScheduleName(name: string): string {
  const isText = typeof name === "string";
  if (isText && namePattern.test(name) && executionIdFault(`${name}@1`) === undefined) return name;
  throw new HoldfastError(
    "NAME_INVALID",
    `The name of a schedule must be 1 to 64 characters of A-Z, a-z, 0-9, "_", "/" and "-", such as "reports/nightly", and must not start with "E_" or "Delay_", ` +
      `since its runs are named after it; got ${isText ? excerpt(name) : spokenKind(name)}.`,
    isText ? { name: name.slice(0, 80) } : {},
  );
}

/** Returns the tag for `runs.list({ tag })`. */
export function scheduleTag(name: string): string {
  return `schedule:${name}`;
}

/**
 * Returns the id of an instant's run, such as `nightly@2026-11-18T09:00:00Z`. Ids contain no dots,
 * so fractions of a second follow a `_`.
 */
export function instantRunId(name: string, instant: number): ExecutionId {
  return `${name}@${instantText(instant)}` as ExecutionId;
}

/** Returns an instant in the form used in ids. Years after 9999 have no sign. */
export function instantText(instant: number): string {
  return new Date(instant).toISOString().replace(".000Z", "Z").replace(".", "_").replace("+", "");
}

const keyPattern = /^[A-Za-z0-9_:/@-]{1,50}$/;

/**
 * Returns the id of a run that a caller fired, such as `nightly@fire:after-the-fix`. @throws
 * HoldfastError `OPTION_INVALID`
 */
export function firedRunId(name: string, key: string): ExecutionId {
  if (typeof key === "string" && keyPattern.test(key)) return `${name}@fire:${key}` as ExecutionId;
  throw new HoldfastError(
    "OPTION_INVALID",
    `The key of a fired run must be 1 to 50 characters of A-Z, a-z, 0-9 and "_:/@-"; got ${typeof key === "string" ? excerpt(key) : spokenKind(key)}.`,
    { option: "key" },
  );
}
