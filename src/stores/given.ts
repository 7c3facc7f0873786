import { durationMs } from "../model/durations.ts";
import { HoldfastError } from "../model/errors.ts";
import { excerpt } from "../model/excerpt.ts";
import { isRecord, spokenKind } from "../model/spoken-kind.ts";
import { isIsolation } from "../sql/isolation.ts";
import type { Isolation } from "../sql/isolation.ts";
import type { Database, WaitOptions } from "./database.ts";

/**
 * The shape of what callers give, checked where it enters: JavaScript lets
 * anything through. Errors name the place and what was there, never its value.
 */

/** @throws HoldfastError `OPTION_INVALID` */
export function givenObject<T>(place: string, given: T): T & object {
  if (isRecord(given)) return given;
  throw givenInvalid(place, "an object", given);
}

/** @throws HoldfastError `OPTION_INVALID` */
export function givenList<T>(
  place: string,
  given: readonly T[],
  itemsMax: number = Number.MAX_SAFE_INTEGER,
): readonly T[] {
  if (!Array.isArray(given)) throw givenInvalid(place, "a list", given);
  if (given.length <= itemsMax) return given as readonly T[];
  throw new HoldfastError(
    "OPTION_INVALID",
    `Expected ${place} to be a list of at most ${itemsMax}; got one of ${given.length}.`,
    { option: place },
  );
}

/** What a call that only waits may be told. */
export const waitNames: readonly (keyof WaitOptions)[] = ["signal", "timeout"];

/**
 * The options of a call; none are as good as an empty object. Where it is said
 * which ones there are, another one is a slip of the pen, which would go
 * unnoticed. @throws HoldfastError `OPTION_INVALID`
 */
export function optionsOf<T extends object>(
  given: T | undefined,
  known?: readonly (keyof T & string)[],
): T {
  const options = givenObject("options", given ?? emptyUnlessNull(given)) as T;
  if (known !== undefined)
    for (const name of Object.keys(options))
      if (!known.some((each) => each === name))
        throw optionUnknown(name, known);
  return options;
}

function optionUnknown(name: string, known: readonly string[]): HoldfastError {
  return new HoldfastError(
    "OPTION_INVALID",
    `There is no option ${excerpt(name)}. There are: ${known.join(", ")}.`,
    { option: name },
  );
}

function emptyUnlessNull(given: null | undefined): object | null {
  return given === undefined ? {} : null;
}

/** @throws HoldfastError `OPTION_INVALID` */
export function givenFlag(
  place: string,
  given: boolean | undefined,
): boolean | undefined {
  if (given === undefined || typeof given === "boolean") return given;
  throw givenInvalid(place, "true or false", given);
}

/** The database of a facade: whoever forgets to await it would learn so late and in other words. @throws HoldfastError `OPTION_INVALID` */
export function givenDatabase(given: Database): Database {
  const { write, read, then } = Object(given) as Partial<Database> & {
    readonly then?: unknown;
  };
  if (typeof write === "function" && typeof read === "function") return given;
  throw typeof then === "function"
    ? new HoldfastError(
        "OPTION_INVALID",
        "The database is still being opened. Await it first: `const database = await openSqlite(…)`.",
        { option: "database" },
      )
    : givenInvalid("database", "one that was opened", given);
}

/** For whoever does not give it to a database, which looks itself. @throws HoldfastError `OPTION_INVALID` */
export function givenSignal(given: AbortSignal | undefined): void {
  if (given !== undefined && typeof given?.addEventListener !== "function")
    throw givenInvalid("signal", "an AbortSignal", given);
}

/** @throws HoldfastError `OPTION_INVALID` */
export function givenIsolation(
  given: Isolation | undefined,
): Isolation | undefined {
  if (given === undefined || isIsolation(given)) return given;
  throw givenInvalid("isolation", '"serializable" or "readCommitted"', given);
}

/** How long a call waits, also for those that may have nothing to wait for. @throws HoldfastError `OPTION_INVALID`, `DURATION_INVALID` */
export function givenWait(given: WaitOptions | undefined): WaitOptions {
  const { signal, timeout } = optionsOf(given);
  givenSignal(signal);
  if (timeout !== undefined) durationMs(timeout, "timeout");
  return { signal, timeout };
}

/** @throws HoldfastError `OPTION_INVALID` */
export function givenFunction(place: string, given: unknown): void {
  if (given !== undefined && typeof given !== "function")
    throw givenInvalid(place, "a function", given);
}

export function givenInvalid(
  place: string,
  expected: string,
  given: unknown,
): HoldfastError {
  return new HoldfastError(
    "OPTION_INVALID",
    `Expected ${place} to be ${expected}; got ${spokenKind(given)}.`,
    { option: place },
  );
}
