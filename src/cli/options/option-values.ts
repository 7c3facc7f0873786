import { InvalidArgumentError } from "commander";
import { durationMs } from "../../model/time/durations.ts";
import type { CliHost } from "../host.ts";

/** What commander calls with the text of an option: a count. */
export function wholeNumberOption(text: string): number {
  const number = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (Number.isSafeInteger(number)) return number;
  throw new InvalidArgumentError("It takes a whole number.");
}

/** The same for a length of time, in milliseconds. */
export function durationOption(text: string): number {
  const ms = durationOf(text);
  if (ms !== undefined) return ms;
  throw new InvalidArgumentError("It takes a length of time, such as 500ms, 30s or 2h.");
}

/** The same for an instant: a date, or how long ago. */
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
      "It takes a date, such as 2026-11-17 or 2026-11-17T09:00Z, or how long ago, such as 2h.",
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
