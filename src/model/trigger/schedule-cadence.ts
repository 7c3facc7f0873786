import { durationMs } from "../time/durations.ts";
import type { Duration } from "../time/durations.ts";
import { HoldfastError } from "../errors.ts";
import type { CatchUp } from "./schedule-plan.ts";

/** The stored cadence of a schedule. */
export type Cadence =
  | {
      readonly kind: "cron";
      readonly expression: string;
      readonly timeZone: string;
    }
  /** The anchor, and every multiple of `everyMs` after it. */
  | {
      readonly kind: "interval";
      readonly everyMs: number;
      readonly anchor: number;
    };

/** The caller's description of a schedule: its cadence, and the handling of missed instants. */
export type ScheduleDraft = (
  | {
      /**
       * A cron expression with five fields (minute, hour, day, month, weekday), or six with seconds
       * first.
       */
      readonly cron: string;
      /** The time zone of the expression, such as "Europe/Berlin"; defaults to UTC. */
      readonly timeZone?: string;
    }
  | {
      readonly every: Duration;
      /** The first instant, in milliseconds since 1970; defaults to `every` from now. */
      readonly from?: number;
    }
) & {
  /**
   * The handling of instants that passed while no scheduler ran. Defaults to `latest`, so a report
   * that was missed three times is made once. `skip` fires only instants that are less than a
   * minute late. `all` fires each instant.
   */
  readonly catchUp?: CatchUp;
  /** The most instants that `all` fires, the newest ones: 1 to 1,000; defaults to 100. */
  readonly catchUpMax?: number;
};

/** The instants of a cadence, in milliseconds since 1970. */
export interface Instants {
  /** Returns the first instant after the given one; undefined when there is none. */
  readonly next: (after: number) => number | undefined;
  /**
   * Returns the last instants after `after` up to and including `until`, ascending, at most
   * `count`.
   */
  readonly latest: (after: number, until: number, count: number) => Search<readonly number[]>;
}

/** A search that pauses after each long step, so that other work can run in between. */
export type Search<Found> = Generator<void, Found, void>;

/** The last instant that a Date can show. */
const instantMax = 8.64e15;

/** The shortest interval of a schedule. Anything more frequent is a loop. */
const everyMsMin = 1_000;

/** @throws HoldfastError `INTERVAL_INVALID`, `DURATION_INVALID`, `TIME_OUT_OF_RANGE` */
export function intervalCadence(
  { every, from }: Extract<ScheduleDraft, { readonly every: Duration }>,
  now: number,
): Extract<Cadence, { readonly kind: "interval" }> {
  const everyMs = durationMs(every, "every");
  if (everyMs < everyMsMin)
    throw new HoldfastError(
      "INTERVAL_INVALID",
      `A schedule fires at most once a second (every 1000 ms); got ${everyMs} ms. Do more frequent work in a loop inside the run.`,
      { everyMs, everyMsMin },
    );
  const anchor = from === undefined ? now + everyMs : from;
  if (!Number.isSafeInteger(anchor) || anchor < 0 || anchor > instantMax)
    throw new HoldfastError(
      "TIME_OUT_OF_RANGE",
      "The first instant of an interval must be a whole number of milliseconds between the years 1970 and 275760 (0 to 8.64e15).",
      { option: "from" },
    );
  return { kind: "interval", everyMs, anchor };
}

export function intervalInstants(everyMs: number, anchor: number): Instants {
  const lastBy = (instant: number): number => Math.floor((instant - anchor) / everyMs);
  return {
    next(after) {
      const next = anchor + Math.max(0, lastBy(after) + 1) * everyMs;
      return next <= instantMax ? next : undefined;
    },
    *latest(after, until, count) {
      const last = lastBy(until);
      const first = Math.max(0, lastBy(after) + 1, last - count + 1);
      return Array.from(
        { length: Math.max(0, last - first + 1) },
        (_, index) => anchor + (first + index) * everyMs,
      );
    },
  };
}
