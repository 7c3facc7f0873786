import type { Clock } from "../model/clock.ts";
import { HoldfastError } from "../model/errors.ts";
import { excerpt } from "../model/excerpt.ts";
import type { Warning } from "../stores/database.ts";

/** Options come from people: each is checked, and an unknown one is a typo. */
export function refuseUnknown(
  given: object,
  known: readonly string[],
  prefix = "",
): void {
  for (const name of Object.keys(given))
    if (!known.includes(name))
      throw new HoldfastError(
        "OPTION_INVALID",
        `There is no option ${excerpt(prefix + name)}. There are: ${known.join(", ")}.`,
        { option: prefix + name },
      );
}

export function wholeNumber(
  name: string,
  value: number,
  min = 1,
  max: number = Number.MAX_SAFE_INTEGER,
): number {
  if (Number.isSafeInteger(value) && value >= min && value <= max) return value;
  throw optionInvalid(name, value, `a whole number from ${min} to ${max}`);
}

/** The first of the accepted values is the default. */
export function oneOf<T>(
  name: string,
  value: T | undefined,
  accepted: readonly [T, ...T[]],
): T {
  if (value === undefined) return accepted[0];
  if (accepted.includes(value)) return value;
  const list = accepted
    .filter((item) => item !== undefined)
    .map((item) => JSON.stringify(item))
    .join(" or ");
  throw optionInvalid(name, value, list);
}

export function checkedClock(clock: Clock): Clock {
  if (typeof clock?.now === "function") return clock;
  throw optionInvalid("clock", clock, "an object with now(): number");
}

/** Who is told what is worth knowing and no error. */
export function warner(
  onWarning: ((warning: Warning) => void) | undefined,
): (warning: Warning) => void {
  if (onWarning === undefined)
    return ({ code, message }) =>
      process.emitWarning(message, { type: "HoldfastWarning", code });
  if (typeof onWarning === "function") return onWarning;
  throw optionInvalid("onWarning", onWarning, "a function");
}

export function optionInvalid(
  name: string,
  found: unknown,
  accepted: string,
): HoldfastError {
  const shown = typeof found === "string" ? excerpt(found) : String(found);
  return new HoldfastError(
    "OPTION_INVALID",
    `Option ${name} is ${shown}; expected ${accepted}.`,
    { option: name, accepted },
  );
}
