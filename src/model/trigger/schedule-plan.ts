import type { Instants, Search } from "./schedule-cadence.ts";

/**
 * What happens to instants that have passed while no scheduler ran to fire
 * them: `skip` fires none of them, `latest` the last one, `all` each.
 */
export type CatchUp = "skip" | "latest" | "all";

export const catchUps: readonly CatchUp[] = ["skip", "latest", "all"];

/** Instants that will not fire: from the first one up to, and without, the other. */
export interface SkippedInstants {
  readonly from: number;
  readonly before: number;
}

export interface SchedulePlan {
  /** To be fired, in order. */
  readonly fire: readonly number[];
  readonly skipped: SkippedInstants | undefined;
  /** The first instant that is not due yet; undefined when there is none. */
  readonly next: number | undefined;
}

/** An instant that is fired within so much time of it is on time: what `skip` still fires. */
const onTimeMs = 60_000;

/**
 * What to do about a schedule whose next instant has come. Every instant from
 * that one up to now is either fired or named as skipped. The stored instant
 * counts though the cadence may no longer know it: rules of time zones change.
 */
export function* planDue(
  instants: Instants,
  {
    nextAt,
    catchUp,
    catchUpMax,
  }: {
    readonly nextAt: number;
    readonly catchUp: CatchUp;
    readonly catchUpMax: number;
  },
  at: number,
): Search<SchedulePlan> {
  // That it has come was seen a moment ago. A clock that was set back since
  // would bring instants again that have fired.
  const now = Math.max(at, nextAt);
  const count = catchUp === "all" ? catchUpMax : 1;
  const later = yield* instants.latest(nextAt, now, count);
  const due = [nextAt, ...later].slice(-count);
  const next = instants.next(now);
  const [first = nextAt] = due;
  if (catchUp === "skip" && now - first > onTimeMs)
    return {
      fire: [],
      skipped: { from: nextAt, before: next ?? now + 1 },
      next,
    };
  const skipped = first > nextAt ? { from: nextAt, before: first } : undefined;
  return { fire: due, skipped, next };
}

const backoffMsMin = 1_000;
const backoffMsMax = 60_000;

/** How long a schedule waits after so many failures in a row. */
export function backoffMs(failures: number): number {
  // Beyond 16 doublings the limit is reached many times over.
  return Math.min(backoffMsMin * 2 ** Math.min(failures, 16), backoffMsMax);
}
