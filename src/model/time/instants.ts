import { durationMs, type Duration } from "./durations.ts";
import { HoldfastError } from "../errors.ts";
import { safely } from "../safely.ts";
import { draftOf, givenInvalid } from "../shape.ts";

/** The start of an execution: at once, at an instant, or after a time. */
export type StartAt = "now" | { readonly at: Date | number } | { readonly in: Duration };

// The last instant that a Date can show; later ones could not be printed.
const instantMax = 8.64e15;

/**
 * Returns the instant of `startAt`, in milliseconds since 1970, as seen from `now`. An instant in
 * the past is due at once.
 *
 * @throws HoldfastError `TIME_OUT_OF_RANGE`, `DURATION_INVALID` or `OPTION_INVALID`.
 */
export function resolveStartAt(startAt: StartAt, now: number): number {
  if (startAt === "now") return now;
  if (typeof startAt === "number" || isDate(startAt))
    throw new HoldfastError(
      "OPTION_INVALID",
      `Expected startAt to be "now", { at } or { in }; got only a ${isDate(startAt) ? "Date" : "number"}: ` +
        'write { at: date } for an instant, or { in: "2h" } for a time from now.',
      { option: "startAt" },
    );
  const { at, in: after } = draftOf<StartDraft>("startAt", startAt, ["at", "in"]);
  if (at === undefined && after === undefined)
    throw givenInvalid("startAt", '"now", { at } or { in }', startAt);
  const instant =
    at === undefined
      ? now + durationMs(after as Duration, "the time until start")
      : instantOfDate("startAt.at", at);
  return inRange(instant, "An instant to start at or to sleep until");
}

interface StartDraft {
  readonly at?: Date | number;
  readonly in?: Duration;
}

/**
 * Returns the instant of a Date or a number. @throws HoldfastError `OPTION_INVALID` for any other
 * value, which would be taken for 1970.
 */
export function instantOfDate(place: string, at: Date | number): number {
  if (typeof at === "number") return at;
  if (isDate(at)) return safely(() => Number(at), Number.NaN);
  throw givenInvalid(place, "a Date or milliseconds since 1970", at);
}

/** Recognises a Date of another realm too. */
function isDate(given: unknown): given is Date {
  return safely(() => Object.prototype.toString.call(given) === "[object Date]", false);
}

/**
 * Returns the instant at a given time after `now`, such as the end of a lease or a deadline.
 *
 * @throws HoldfastError `TIME_OUT_OF_RANGE` or `DURATION_INVALID`.
 */
export function instantAfter(now: number, duration: Duration, what: string): number {
  return inRange(now + durationMs(duration, what), `The end of ${what}`);
}

function inRange(instant: number, what: string): number {
  // The comparison is written so that NaN, an invalid Date, fails it. Fractions round up, as
  // durations do. Adding 0 turns -0 into 0.
  if (instant >= 0 && instant <= instantMax) return Math.ceil(instant) + 0;
  throw new HoldfastError(
    "TIME_OUT_OF_RANGE",
    `${what} must lie between the years 1970 and 275760 (0 to 8.64e15 ms); got ${instant} ms.`,
    { instant },
  );
}
