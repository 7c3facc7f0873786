import { Cron } from "croner";
import { HoldfastError } from "../../model/errors.ts";
import { excerpt } from "../../model/values/excerpt.ts";
import { spokenKind } from "../../model/values/spoken-kind.ts";
import type { Cadence, Instants, Search } from "../../model/trigger/schedule-cadence.ts";

type CronCadence = Extract<Cadence, { readonly kind: "cron" }>;

const expressionCharactersMax = 256;

/** Cron expressions are about seconds. */
const secondMs = 1_000;

/**
 * The instants of a cron expression. When clocks are set forward, a time of
 * day that is left out fires at the end of the gap, and what repeats within
 * hours has no instants there; when they are set back, a time of day fires at
 * its first occurrence alone, and what repeats in both.
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
  // What it is asked about does not count itself.
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

/** Expressions that were read before: reading one takes longer than asking it. */
const read = new Map<string, Cron>();
const readMax = 256;

function known(expression: string, timeZone: string): Cron {
  // What is no text may be nothing that a key can be made of.
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
    throw cronInvalid(expression, "never", "names no date that will ever come");
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
    throw cronInvalid(expression, "syntax", "cannot be read", { cause });
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

/** Each by itself, so that the error can name the one that is wrong. */
function checkFields(expression: string, fields: readonly RegExpMatchArray[]): void {
  const names = fieldNames.slice(-fields.length);
  for (const [index, { 0: field, index: position = 0 }] of fields.entries()) {
    const name = names[index] ?? "";
    const place = { field: name, position };
    // It means the time at which the expression is read, so it is no rule.
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
  return `has a ${name} that does not exist (at character ${position + 1})`;
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
    `The cron expression is ${spokenKind(expression)} instead of a text. ${cronRemedy}`,
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
      // It throws for a name that this machine does not know.
      new Intl.DateTimeFormat("en", { timeZone }).resolvedOptions();
      return timeZone;
    }
  } catch {
    // Told below, in one way for all.
  }
  throw timeZoneInvalid(timeZone);
}

function timeZoneInvalid(timeZone: unknown): HoldfastError {
  return new HoldfastError(
    "TIME_ZONE_INVALID",
    `There is no time zone ${typeof timeZone === "string" ? excerpt(timeZone) : `of type ${typeof timeZone}`} on this machine. ` +
      'Use a name of the IANA list, such as "Europe/Berlin" or "UTC".',
    {
      ...(typeof timeZone === "string" && { timeZone: timeZone.slice(0, 80) }),
    },
  );
}
