import { HoldfastError } from "../../model/errors.ts";
import {
  intervalCadence,
  intervalInstants,
  type Cadence,
  type Instants,
  type ScheduleDraft,
} from "../../model/trigger/schedule-cadence.ts";
import { cronCadence, cronInstants } from "./cron.ts";

/**
 * The cadence that a caller described, checked and complete.
 *
 * @throws HoldfastError `CRON_INVALID`, `TIME_ZONE_INVALID`,
 *   `INTERVAL_INVALID`, `DURATION_INVALID`, `TIME_OUT_OF_RANGE`,
 *   `OPTION_INVALID`
 */
export function cadenceOf(draft: ScheduleDraft, now: number): Cadence {
  if (isDraft(draft, "cron")) {
    const { cron, timeZone = "UTC" } = draft;
    refuseIn(draft, "from", "an interval (every)");
    return cronCadence(cron, timeZone, now);
  }
  if (isDraft(draft, "every")) {
    refuseIn(draft, "timeZone", "a cron expression");
    return intervalCadence(draft, now);
  }
  throw new HoldfastError(
    "OPTION_INVALID",
    'A schedule has either `cron`, such as "0 9 * * *", or `every`, such as "15 min".',
    { option: "cadence" },
  );
}

/**
 * Refuses an option of another sort of schedule. It would be ignored otherwise, and types allow it.
 */
function refuseIn(draft: object, option: string, where: string): void {
  if ((draft as Readonly<Record<string, unknown>>)[option] === undefined) return;
  throw new HoldfastError(
    "OPTION_INVALID",
    `Option ${option} of a schedule belongs to ${where}, but this one has none. Leave it out.`,
    { option },
  );
}

function isDraft<K extends "cron" | "every">(
  draft: unknown,
  key: K,
): draft is Extract<ScheduleDraft, Record<K, unknown>> {
  const other = key === "cron" ? "every" : "cron";
  return typeof draft === "object" && draft !== null && key in draft && !(other in draft);
}

export function instantsOf(cadence: Cadence): Instants {
  return cadence.kind === "cron"
    ? cronInstants(cadence)
    : intervalInstants(cadence.everyMs, cadence.anchor);
}

/** The text of a cadence in its column. */
export function cadenceText(cadence: Cadence): string {
  return JSON.stringify(
    cadence.kind === "cron"
      ? { cron: cadence.expression, timeZone: cadence.timeZone }
      : { everyMs: cadence.everyMs, anchor: cadence.anchor },
  );
}

/** Parses that text; undefined when it is invalid. */
export function parseCadence(text: string): Cadence | undefined {
  let fields: unknown;
  try {
    fields = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof fields !== "object" || fields === null) return undefined;
  const { cron, timeZone, everyMs, anchor } = fields as Readonly<Record<string, unknown>>;
  if (typeof cron === "string" && typeof timeZone === "string")
    return { kind: "cron", expression: cron, timeZone };
  return isCount(everyMs) && everyMs > 0 && isCount(anchor)
    ? { kind: "interval", everyMs, anchor }
    : undefined;
}

function isCount(given: unknown): given is number {
  return Number.isSafeInteger(given) && (given as number) >= 0;
}
