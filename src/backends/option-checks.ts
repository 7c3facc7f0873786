import type { Clock } from "../model/time/clock.ts";
import { HoldfastError } from "../model/errors.ts";
import { givenObject, readGiven } from "../model/shape.ts";
import { excerpt } from "../model/values/excerpt.ts";
import { isRecord } from "../model/values/spoken-kind.ts";
import { isIsolation } from "../sql/isolation.ts";
import type { Isolation } from "../sql/isolation.ts";
import type { WaitOptions, Warning, WriteOptions } from "../sql/database.ts";

/** Refuses unknown options, which are typos of a person. */
export function refuseUnknown(given: unknown, known: readonly string[], prefix = ""): void {
  if (!isRecord(given))
    throw new HoldfastError(
      "OPTION_INVALID",
      `Expected an object with options (${known.join(", ")}), got ${shown(given)}.`,
      { accepted: known },
    );
  const place = prefix === "" ? "options" : prefix.slice(0, -1);
  givenObject(place, given);
  // Reads the values too, so that an option whose getter throws is refused here.
  for (const [name] of readGiven(place, () => Object.entries(given)))
    if (!known.includes(name))
      throw new HoldfastError(
        "OPTION_INVALID",
        `Unknown option ${excerpt(prefix + name)}. The options are: ${known.join(", ")}.`,
        { option: prefix + name },
      );
}

/** Checks the options of `read` and `writable`, which are usually absent. */
export function refuseUnknownWait(options: WaitOptions | undefined): void {
  if (options === undefined) return;
  if (Object.hasOwn(Object(options) as object, "isolation"))
    throw new HoldfastError(
      "OPTION_INVALID",
      "Option isolation is for write: a read is always one snapshot.",
      { option: "isolation" },
    );
  refuseUnknown(options, ["signal", "timeout"]);
}

/** Checks the options of `write` and returns the requested isolation, if any. */
export function checkedWrite(options: WriteOptions | undefined): Isolation | undefined {
  if (options === undefined) return undefined;
  refuseUnknown(options, ["signal", "timeout", "isolation"]);
  const { isolation } = options;
  if (isolation === undefined || isIsolation(isolation)) return isolation;
  throw optionInvalid("isolation", isolation, '"serializable" or "readCommitted"');
}

export function wholeNumber(
  name: string,
  value: number,
  min = 1,
  max: number = Number.MAX_SAFE_INTEGER,
): number {
  if (Number.isSafeInteger(value) && value >= min && value <= max) return value;
  const range = max === Number.MAX_SAFE_INTEGER ? `${min} or more` : `${min} to ${max}`;
  throw optionInvalid(name, value, `a whole number, ${range}`);
}

/** Checks a value against the accepted ones, of which the first is the default. */
export function oneOf<T>(name: string, value: T | undefined, accepted: readonly [T, ...T[]]): T {
  if (value === undefined) return accepted[0];
  if (accepted.includes(value)) return value;
  const list = accepted
    .filter((item) => item !== undefined)
    .map((item) => JSON.stringify(item))
    .join(" or ");
  throw optionInvalid(name, value, list);
}

export function checkedClock(clock: Clock): Clock {
  if (typeof clock?.now === "function" && typeof clock.wakeAt === "function") return clock;
  throw optionInvalid(
    "clock",
    clock,
    "an object with now(): number and wakeAt(instant, run): () => void, such as manualClock() of holdfast/testing",
  );
}

/**
 * The listener for warnings that are not errors. If a listener throws, Node prints its warning and
 * the thrown error instead, because the work that warns must continue.
 */
export function warner(
  onWarning: ((warning: Warning) => void) | undefined,
): (warning: Warning) => void {
  const say = ({ code, message }: Warning): void =>
    process.emitWarning(message, { type: "HoldfastWarning", code });
  if (onWarning === undefined) return say;
  if (typeof onWarning !== "function") throw optionInvalid("onWarning", onWarning, "a function");
  return (warning) => {
    try {
      onWarning(warning);
    } catch (error) {
      const message = `${warning.message} (onWarning threw: ${String(error)})`;
      say({ ...warning, message });
    }
  };
}

export function optionInvalid(name: string, found: unknown, accepted: string): HoldfastError {
  return new HoldfastError(
    "OPTION_INVALID",
    `Option ${name} is ${shown(found)}; expected ${accepted}.`,
    { option: name, accepted },
  );
}

/** A simple value as it is; of a larger value only its kind. */
function shown(found: unknown): string {
  if (typeof found === "string") return excerpt(found);
  if (typeof found === "function") return "a function";
  if (Array.isArray(found)) return "an array";
  if (typeof found !== "object" || found === null) return String(found);
  const name: unknown = found.constructor?.name;
  return typeof name === "string" && name !== "" && name !== "Object"
    ? `an object (${name})`
    : "an object";
}
