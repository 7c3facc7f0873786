import { InvalidArgumentError } from "commander";
import { durationMs } from "../../model/time/durations.ts";
import type { CliHost } from "../host.ts";

/** Parses an option of commander as a count. */
export function wholeNumberOption(text: string): number {
  const number = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (Number.isSafeInteger(number)) return number;
  throw new InvalidArgumentError("It must be a whole number.");
}

/** Parses an option as a duration in milliseconds. */
export function durationOption(text: string): number {
  const ms = durationOf(text);
  if (ms !== undefined) return ms;
  throw new InvalidArgumentError("It must be a duration, such as 500ms, 30s or 2h.");
}

/** Parses an option as an instant: a date, or a duration before now. */
export function instantOption({ clock }: Pick<CliHost, "clock">): (text: string) => number {
  return (text) => {
    if (/^\d{4}-\d\d-\d\d/.test(text)) {
      const at = Date.parse(text);
      if (Number.isSafeInteger(at)) return at;
    } else {
      const ms = durationOf(text);
      if (ms !== undefined) return Math.max(0, clock.now() - ms);
    }
    throw new InvalidArgumentError(
      "It must be a date, such as 2026-11-17 or 2026-11-17T09:00Z, or a duration before now, such as 2h.",
    );
  };
}

function durationOf(text: string): number | undefined {
  try {
    return durationMs(text, "time");
  } catch {
    return undefined;
  }
}
