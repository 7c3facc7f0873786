/** Times in words. Pure: the time zone is an argument. */

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;

/** `350 ms`, `2.3 s`, `45 s`, `2 min 5 s`, `2 h 5 min`, `3 days 4 h`: the two largest units, rounded down. */
export function spokenDuration(ms: number): string {
  if (!Number.isFinite(ms)) return "unknown";
  const length = Math.max(0, ms);
  if (length < second) return `${Math.floor(length)} ms`;
  if (length < 10 * second)
    return `${(Math.floor(length / 100) / 10).toFixed(1).replace(".0", "")} s`;
  if (length < minute) return `${Math.floor(length / second)} s`;
  if (length < hour) return inTwo(length, minute, "min", second, "s");
  if (length < day) return inTwo(length, hour, "h", minute, "min");
  return inTwo(length, day, length < 2 * day ? "day" : "days", hour, "h");
}

function inTwo(
  ms: number,
  large: number,
  largeName: string,
  small: number,
  smallName: string,
): string {
  const rest = Math.floor((ms % large) / small);
  const whole = `${Math.floor(ms / large)} ${largeName}`;
  return rest === 0 ? whole : `${whole} ${rest} ${smallName}`;
}

/**
 * `today 09:00`, `tomorrow 09:00`, `Tue 09:00` within six days, else
 * `2026-11-17 09:00`; with seconds when it is less than an hour away.
 */
export function spokenInstant(at: number, now: number, timeZone: string): string {
  if (!isDate(at)) return beyond;
  const there = partsOf(at, timeZone);
  const isNear = Math.abs(at - now) < hour;
  const time = `${there.hour}:${there.minute}${isNear ? `:${there.second}` : ""}`;
  const days = daysBetween(partsOf(now, timeZone), there);
  if (days === 0) return `today ${time}`;
  if (days === 1) return `tomorrow ${time}`;
  if (days === -1) return `yesterday ${time}`;
  if (Math.abs(days) < 7) return `${there.weekday} ${time}`;
  return `${there.year}-${there.month}-${there.day} ${time}`;
}

/** `2026-11-17 09:00:05.123`, for logs and timelines. */
export function exactInstant(at: number, timeZone: string): string {
  if (!isDate(at)) return String(at);
  const parts = partsOf(at, timeZone);
  const ms = String(((at % second) + second) % second).padStart(3, "0");
  return `${parts.year}-${parts.month}-${parts.day} ${parts.hour}:${parts.minute}:${parts.second}.${ms}`;
}

/** `2026-11-17T09:00:05.123Z` */
export function isoInstant(at: number): string {
  return isDate(at) ? new Date(at).toISOString() : beyond;
}

const beyond = "an instant beyond all calendars";

function isDate(at: number): boolean {
  return !Number.isNaN(new Date(at).getTime());
}

type Parts = Readonly<Record<Intl.DateTimeFormatPartTypes, string>>;

const formats = new Map<string, Intl.DateTimeFormat>();

/** The parts in the Gregorian calendar, in any locale of the machine. */
function partsOf(at: number, timeZone: string): Parts {
  const format =
    formats.get(timeZone) ??
    new Intl.DateTimeFormat("en-GB", {
      timeZone,
      hourCycle: "h23",
      weekday: "short",
      year: "numeric",
      month: "2-digit",
      day: "2-digit",
      hour: "2-digit",
      minute: "2-digit",
      second: "2-digit",
    });
  formats.set(timeZone, format);
  const parts = format.formatToParts(at);
  return Object.fromEntries(parts.map(({ type, value }) => [type, value])) as unknown as Parts;
}

/** Calendar days: from 23:59 to 00:01 is one. */
function daysBetween(from: Parts, to: Parts): number {
  const number = ({ year, month, day: date }: Parts): number =>
    Date.UTC(Number(year), Number(month) - 1, Number(date)) / day;
  return number(to) - number(from);
}
