import { HoldfastError } from "../errors.ts";
import { excerpt } from "../values/excerpt.ts";
import { spokenKind } from "../values/spoken-kind.ts";

const unitMs = {
  ms: 1,
  millisecond: 1,
  milliseconds: 1,
  s: 1_000,
  sec: 1_000,
  second: 1_000,
  seconds: 1_000,
  m: 60_000,
  min: 60_000,
  minute: 60_000,
  minutes: 60_000,
  h: 3_600_000,
  hour: 3_600_000,
  hours: 3_600_000,
  d: 86_400_000,
  day: 86_400_000,
  days: 86_400_000,
  w: 604_800_000,
  week: 604_800_000,
  weeks: 604_800_000,
} as const;

type Unit = keyof typeof unitMs;

/**
 * A length of time: milliseconds, or an amount with its unit such as "500ms", "1.5 h" or "2 days".
 * Months and years are missing because they have no fixed length.
 */
export type Duration = number | `${number}${"" | " "}${Unit}`;

const amountAndUnit = /^(\d{1,16})(?:\.(\d{1,9}))? ?([a-z]+)$/;

/**
 * Returns the length in whole milliseconds. Fractions round up, so that nothing happens earlier
 * than asked. Takes any text, since durations also come from configuration files, and ignores case.
 *
 * @throws HoldfastError `DURATION_INVALID`, which names `what` was being set.
 */
export function durationMs(value: number | string, what: string = "a duration"): number {
  const ms = typeof value === "string" ? textMs(value) : numberMs(value);
  if (ms !== undefined && ms <= Number.MAX_SAFE_INTEGER) return ms;
  const got = spoken(value);
  throw new HoldfastError(
    "DURATION_INVALID",
    `Expected ${what} as milliseconds (a number from 0 to 2^53 - 1) or as an amount with one unit ` +
      `(ms, s, min, h, d, w or their long names), such as "500ms", "30s", "1.5 h" or "2 days"; got ${got}.`,
    { what, got },
  );
}

/** Shows a text, which comes from a configuration file. For other values it shows only the kind. */
function spoken(value: unknown): string {
  if (typeof value === "string") return excerpt(value);
  return typeof value === "number" ? String(value) : spokenKind(value);
}

function numberMs(value: number): number | undefined {
  // Written so that NaN and other types fail the comparison. Adding 0 turns -0 into 0.
  return typeof value === "number" && value >= 0 ? Math.ceil(value) + 0 : undefined;
}

function textMs(text: string): number | undefined {
  const [, whole, fraction = "", unit] = amountAndUnit.exec(text.toLowerCase()) ?? [];
  if (whole === undefined || unit === undefined || !isUnit(unit)) return;
  // Uses integers, because 1.1 * 1000 is slightly more than 1100 in floating point and would round
  // up to 1101.
  const numerator = BigInt(whole + fraction) * BigInt(unitMs[unit]);
  const denominator = 10n ** BigInt(fraction.length);
  return Number((numerator + denominator - 1n) / denominator);
}

function isUnit(text: string): text is Unit {
  return Object.hasOwn(unitMs, text);
}
