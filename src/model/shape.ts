import { HoldfastError } from "./errors.ts";
import { safely } from "./safely.ts";
import { excerpt } from "./values/excerpt.ts";
import { isList, isRecord, spokenKind, spokenStranger } from "./values/spoken-kind.ts";

/**
 * Checks the shape of arguments where they enter, since JavaScript passes anything. Errors name the
 * argument and its kind, never its value.
 */

/**
 * Rejects promises, Dates and the like too: without fields they would pass for empty options.
 * @throws HoldfastError `OPTION_INVALID`
 */
export function givenObject<T>(place: string, given: T): T & object {
  if (!isRecord(given)) throw givenInvalid(place, "an object", given);
  const stranger = readGiven(place, () => spokenStranger(given));
  if (stranger === undefined) return given;
  throw new HoldfastError(
    "OPTION_INVALID",
    `Expected ${place} to be a plain object; got ${stranger}.${adviceFor(stranger)}`,
    { option: place },
  );
}

function adviceFor(stranger: string): string {
  if (stranger === "a promise") return " Await it first.";
  return stranger === "an AbortSignal" ? " Pass it as { signal }." : "";
}

/**
 * Returns the result of reading an argument. A getter or a proxy runs the caller's code, which may
 * throw errors without a code.
 * @throws HoldfastError `OPTION_INVALID`
 */
export function readGiven<T>(place: string, read: () => T): T {
  try {
    return read();
  } catch (cause) {
    throw new HoldfastError(
      "OPTION_INVALID",
      `Expected ${place} to be readable; reading it threw an error (see the cause). Nothing was written.`,
      { option: place },
      { cause },
    );
  }
}

/** The longest list that a call accepts. Walking 20 million holes of a list takes seconds. */
export const listItemsMax = 1_000_000;

/**
 * Returns a copy of a list. The length is checked before the list is walked, since it may be any
 * number. @throws HoldfastError `OPTION_INVALID`
 */
export function givenList<T>(
  place: string,
  given: readonly T[],
  itemsMax: number = listItemsMax,
): readonly T[] {
  if (!isList(given)) throw givenInvalid(place, "an array", given);
  const length = readGiven(place, () => given.length);
  if (length <= itemsMax) return readGiven(place, () => Array.from(given));
  throw new HoldfastError(
    "OPTION_INVALID",
    `Expected ${place} to be an array of at most ${itemsMax} items; got ${length}.`,
    { option: place },
  );
}

/**
 * Returns the options of a call; absent options count as an empty object. If `known` is given, any
 * other name is refused as a typo. @throws HoldfastError `OPTION_INVALID`
 */
export function optionsOf<T extends object>(
  given: T | undefined,
  known?: readonly (keyof T & string)[],
): T {
  const options = givenObject("options", given ?? emptyUnlessNull(given)) as T;
  if (known === undefined) return options;
  const unknown = unknownIn("options", options, known);
  if (unknown !== undefined) throw optionUnknown(unknown, known);
  return fieldsOf(options, known);
}

/**
 * Returns a copy of a draft. A property outside `known` is refused as a typo. @throws HoldfastError
 * `OPTION_INVALID`
 */
export function draftOf<T extends object>(
  place: string,
  given: T,
  known: readonly (keyof T & string)[],
): T {
  const draft = givenObject(place, given);
  const unknown = unknownIn(place, draft, known);
  if (unknown === undefined) return fieldsOf(draft, known);
  throw new HoldfastError(
    "OPTION_INVALID",
    `Unknown field ${excerpt(unknown)} in ${place}. The fields are: ${known.join(", ")}.`,
    { option: unknown },
  );
}

function unknownIn(place: string, given: object, known: readonly string[]): string | undefined {
  const names = readGiven(place, () => Object.keys(given));
  return names.find((name) => !known.includes(name));
}

/**
 * Returns a copy, so that no field is read twice: a second read could return another value or
 * throw.
 */
function fieldsOf<T extends object>(given: T, known: readonly (keyof T & string)[]): T {
  const fields: Partial<T> = {};
  for (const name of known)
    readGiven(name, () => {
      const value = given[name];
      if (value !== undefined || Object.hasOwn(given, name)) fields[name] = value;
    });
  return fields as T;
}

function optionUnknown(name: string, known: readonly string[]): HoldfastError {
  return new HoldfastError(
    "OPTION_INVALID",
    `Unknown option ${excerpt(name)}. The options are: ${known.join(", ")}.`,
    { option: name },
  );
}

function emptyUnlessNull(given: null | undefined): object | null {
  return given === undefined ? {} : null;
}

/** @throws HoldfastError `OPTION_INVALID` */
export function givenFlag(place: string, given: boolean | undefined): boolean | undefined {
  if (given === undefined || typeof given === "boolean") return given;
  throw givenInvalid(place, "true or false", given);
}

/**
 * Checks a signal for calls that do not pass it to a database, which checks signals itself. @throws
 * HoldfastError `OPTION_INVALID`
 */
export function givenSignal(given: AbortSignal | undefined): void {
  if (given === undefined) return;
  if (safely(() => typeof given?.addEventListener !== "function", true))
    throw givenInvalid("signal", "an AbortSignal", given);
}

/** @throws HoldfastError `OPTION_INVALID` */
export function givenFunction(place: string, given: unknown): void {
  if (given !== undefined && typeof given !== "function")
    throw givenInvalid(place, "a function", given);
}

/**
 * Reports the progress of a call to its caller. The caller's function may throw anything, which
 * ends the call between two transactions.
 * @throws HoldfastError `OPTION_INVALID`
 */
export function tellProgress<R>(onProgress: ((report: R) => void) | undefined, report: R): void {
  try {
    onProgress?.(report);
  } catch (cause) {
    throw new HoldfastError(
      "OPTION_INVALID",
      "onProgress threw an error, which ended the call; see the cause. Work done before that stays; repeat the call for the rest.",
      { option: "onProgress", report },
      { cause },
    );
  }
}

export function givenInvalid(place: string, expected: string, given: unknown): HoldfastError {
  return new HoldfastError(
    "OPTION_INVALID",
    `Expected ${place} to be ${expected}; got ${spokenKind(given)}.`,
    { option: place },
  );
}

/** True for text that every column can store: without U+0000 and lone surrogates. */
export function isStorable(text: unknown): text is string {
  return typeof text === "string" && !text.includes("\0") && text.isWellFormed();
}

/**
 * Checks a text. The error does not contain the text, because reasons and metadata may be private.
 *
 * @throws HoldfastError `NAME_INVALID`
 */
export function checkedText(what: string, text: string, charactersMax: number = 128): string {
  const isInBounds = typeof text === "string" && text.length > 0 && text.length <= charactersMax;
  if (isInBounds && isStorable(text)) return text;
  const length = typeof text === "string" ? text.length : undefined;
  throw new HoldfastError(
    "NAME_INVALID",
    `${what} must be a string of 1 to ${charactersMax} characters without U+0000 or lone surrogates; ` +
      `got ${length === undefined ? spokenKind(text) : `${length} characters`}.`,
    { what, ...(length !== undefined && { length }) },
  );
}

/**
 * Checks a text in a filter: any text that a column can hold. @throws HoldfastError
 * `OPTION_INVALID`
 */
export function checkedFilterText(option: string, text: string): string {
  if (isStorable(text)) return text;
  throw new HoldfastError(
    "OPTION_INVALID",
    `Option ${option} must be a string without U+0000 or lone surrogates, since no stored text contains those.`,
    { option },
  );
}

/** @throws HoldfastError `OPTION_INVALID`; `details.option` is `what`. */
export function checkedCount(
  what: string,
  count: number,
  range: { readonly min?: number; readonly max?: number } = {},
): number {
  const { min = 0, max = Number.MAX_SAFE_INTEGER } = range;
  if (Number.isSafeInteger(count) && count >= min && count <= max) return count;
  throw new HoldfastError(
    "OPTION_INVALID",
    `Option ${what} must be a whole number from ${min} to ${max}; got ${kindOfCount(count, min)}.`,
    { option: what },
  );
}

/** Describes the fault without the number, which may be a user's data. */
function kindOfCount(count: unknown, min: number): string {
  if (typeof count !== "number") return spokenKind(count);
  if (!Number.isSafeInteger(count)) return "a number that is not a safe integer";
  return count < min ? "a smaller number" : "a larger number";
}

const instantMax = 8.64e15;

/** Checks an instant: whole milliseconds since 1970 that a Date can show. */
export function checkedInstant(what: string, instant: number): number {
  if (Number.isSafeInteger(instant) && instant >= 0 && instant <= instantMax) return instant;
  throw new HoldfastError(
    "OPTION_INVALID",
    `Option ${what} must be an instant in whole milliseconds since 1970, such as Date.now(), up to ${instantMax}; got ${kindOfCount(instant, 0)}.`,
    { option: what },
  );
}

/** Checks a text that may be absent. @throws HoldfastError `NAME_INVALID` */
export function optionalText(
  what: string,
  text: string | null | undefined,
  charactersMax: number,
): string | null {
  return text === null || text === undefined ? null : checkedText(what, text, charactersMax);
}
