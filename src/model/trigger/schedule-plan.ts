import type { Instants, Search } from "./schedule-cadence.ts";

/**
 * The handling of instants that passed while no scheduler ran. `skip` fires none of them, `latest`
 * fires the last one, `all` fires each.
 */
export type CatchUp = "skip" | "latest" | "all";

export const catchUps: readonly CatchUp[] = ["skip", "latest", "all"];

/** The instants that will not fire, from the first one up to the other, which is excluded. */
export interface SkippedInstants {
  readonly from: number;
  readonly before: number;
}

export interface SchedulePlan {
  /** The instants to fire, in order. */
  readonly fire: readonly number[];
  readonly skipped: SkippedInstants | undefined;
  /** The first instant that is not due yet; undefined when there is none. */
  readonly next: number | undefined;
}

/** The delay within which an instant counts as on time; `skip` still fires such an instant. */
const onTimeMs = 60_000;

/**
 * Plans a schedule whose next instant has come. Every instant from that one up to now is either
 * fired or named as skipped. The stored instant counts even if the cadence no longer contains it,
 * because time zone rules change.
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
  // The instant was already seen as due. With a clock that was set back since, fired instants would
  // come again.
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

/** Returns the wait of a schedule after consecutive failures. */
export function backoffMs(failures: number): number {
  // 16 doublings are far beyond the limit.
  return Math.min(backoffMsMin * 2 ** Math.min(failures, 16), backoffMsMax);
}
