import { Cron } from "croner";
import { HoldfastError } from "../../model/errors.ts";
import { excerpt } from "../../model/values/excerpt.ts";
import { spokenKind } from "../../model/values/spoken-kind.ts";
import type { Cadence, Instants, Search } from "../../model/trigger/schedule-cadence.ts";

type CronCadence = Extract<Cadence, { readonly kind: "cron" }>;

const expressionCharactersMax = 256;

/** Cron expressions have a resolution of seconds. */
const secondMs = 1_000;

/**
 * The instants of a cron expression. When clocks are set forward, a time of day that is left out
 * fires at the end of the gap. Instants that repeat within hours have none in the gap. When clocks
 * are set back, a time of day fires only at its first occurrence, and instants that repeat within
 * hours fire in both.
 *
 * @throws HoldfastError `CRON_INVALID` or `TIME_ZONE_INVALID`
 */
export function cronInstants({ expression, timeZone }: CronCadence): Instants {
  const cron = known(expression, timeZone);
  const next = (after: number): number | undefined => cron.nextRun(new Date(after))?.getTime();
  return {
    next,
    *latest(after, until, count) {
      const found: number[] = [];
      for (let each = next(after); each !== undefined && each <= until;) {
        if (found.length === count) return yield* latestOf(cron, until, count);
        found.push(each);
        yield;
        each = next(each);
      }
      return found;
    },
  };
}

function* latestOf(cron: Cron, until: number, count: number): Search<readonly number[]> {
  const found: number[] = [];
  // The library excludes the instant that it is asked about.
  let beyond = new Date((Math.floor(until / secondMs) + 1) * secondMs);
  while (found.length < count) {
    const [instant] = cron.previousRuns(1, beyond);
    if (instant === undefined) break;
    found.push(instant.getTime());
    beyond = instant;
    yield;
  }
  return found.toReversed();
}

/** Parsed expressions: parsing one takes longer than evaluating it. */
const read = new Map<string, Cron>();
const readMax = 256;

function known(expression: string, timeZone: string): Cron {
  // A value that is not a text may not be usable as a key.
  if (typeof expression !== "string") throw cronNoText(expression);
  if (typeof timeZone !== "string") throw timeZoneInvalid(timeZone);
  const key = JSON.stringify([expression, timeZone]);
  const found = read.get(key);
  if (found !== undefined) return found;
  const cron = parsed(expression, checkedTimeZone(timeZone));
  if (read.size >= readMax) read.clear();
  read.set(key, cron);
  return cron;
}

/** @throws HoldfastError `CRON_INVALID` or `TIME_ZONE_INVALID` */
export function cronCadence(expression: string, timeZone: string, now: number): CronCadence {
  const cadence: CronCadence = { kind: "cron", expression, timeZone };
  if (cronInstants(cadence).next(now) === undefined)
    throw cronInvalid(expression, "never", "matches no date");
  return cadence;
}

function parsed(expression: string, timeZone: string): Cron {
  if (expression.length > expressionCharactersMax)
    throw cronInvalid(expression, "length", `is longer than ${expressionCharactersMax} characters`);
  const isNickname = nicknames.has(expression.trim().toLowerCase());
  const fields = [...expression.matchAll(/\S+/g)];
  if (!isNickname && fields.length !== 5 && fields.length !== 6)
    throw cronInvalid(expression, "fields", `has ${fields.length} fields instead of 5 or 6`);
  if (!isNickname) checkFields(expression, fields);
  try {
    return cronOf(expression.trim(), timeZone);
  } catch (cause) {
    throw cronInvalid(expression, "syntax", "has invalid syntax", { cause });
  }
}

const nicknames: ReadonlySet<string> = new Set([
  "@yearly",
  "@annually",
  "@monthly",
  "@weekly",
  "@daily",
  "@midnight",
  "@hourly",
]);

const fieldNames = ["second", "minute", "hour", "day", "month", "weekday"];

/** Checks each field by itself, so that the error can name the wrong one. */
function checkFields(expression: string, fields: readonly RegExpMatchArray[]): void {
  const names = fieldNames.slice(-fields.length);
  for (const [index, { 0: field, index: position = 0 }] of fields.entries()) {
    const name = names[index] ?? "";
    const place = { field: name, position };
    // It means the time at which the expression is parsed, so it is not a rule.
    if (field.includes("?")) throw cronInvalid(expression, "syntax", wrong(name, position), place);
    const alone = fields.map((_, other) => (other === index ? field : "*"));
    try {
      cronOf(alone.join(" "), "UTC");
    } catch (cause) {
      throw cronInvalid(expression, "syntax", wrong(name, position), {
        ...place,
        cause,
      });
    }
  }
}

function wrong(name: string, position: number): string {
  return `has an invalid ${name} (at character ${position + 1})`;
}

function cronOf(expression: string, timezone: string): Cron {
  return new Cron(expression, {
    timezone,
    paused: true,
    mode: "5-or-6-parts",
  });
}

const cronRemedy =
  'Write minute, hour, day, month and weekday, such as "30 9 * * 1-5", with seconds before them if you need them.';

function cronNoText(expression: unknown): HoldfastError {
  return new HoldfastError(
    "CRON_INVALID",
    `The cron expression is ${spokenKind(expression)} instead of a string. ${cronRemedy}`,
    { reason: "type" },
  );
}

function cronInvalid(
  expression: string,
  reason: "length" | "fields" | "syntax" | "never",
  why: string,
  {
    cause,
    ...place
  }: {
    readonly field?: string;
    readonly position?: number;
    readonly cause?: unknown;
  } = {},
): HoldfastError {
  return new HoldfastError(
    "CRON_INVALID",
    `The cron expression ${excerpt(expression)} ${why}. ${cronRemedy}`,
    {
      reason,
      expression: expression.slice(0, expressionCharactersMax),
      ...place,
    },
    { cause },
  );
}

function checkedTimeZone(timeZone: string): string {
  try {
    if (timeZone !== "") {
      // Throws for a name that is unknown on this machine.
      new Intl.DateTimeFormat("en", { timeZone }).resolvedOptions();
      return timeZone;
    }
  } catch {
    // Reported below, in the same way for all cases.
  }
  throw timeZoneInvalid(timeZone);
}

function timeZoneInvalid(timeZone: unknown): HoldfastError {
  return new HoldfastError(
    "TIME_ZONE_INVALID",
    `Unknown time zone ${typeof timeZone === "string" ? excerpt(timeZone) : `of type ${typeof timeZone}`} on this machine. ` +
      'Use a name of the IANA list, such as "Europe/Berlin" or "UTC".',
    {
      ...(typeof timeZone === "string" && { timeZone: timeZone.slice(0, 80) }),
    },
  );
}
