import { HoldfastError } from "../model/errors.ts";
import { isRecord, spokenKind } from "../model/spoken-kind.ts";

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
export function givenList<T>(place: string, given: readonly T[]): readonly T[] {
  if (Array.isArray(given)) return given as readonly T[];
  throw givenInvalid(place, "a list", given);
}

/** The options of a call; none are as good as an empty object. @throws HoldfastError `OPTION_INVALID` */
export function optionsOf<T extends object>(given: T | undefined): T {
  return givenObject("options", given ?? emptyUnlessNull(given)) as T;
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

/** For whoever does not give it to a database, which looks itself. @throws HoldfastError `OPTION_INVALID` */
export function givenSignal(given: AbortSignal | undefined): void {
  if (given !== undefined && typeof given?.addEventListener !== "function")
    throw givenInvalid("signal", "an AbortSignal", given);
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
