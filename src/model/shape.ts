import { HoldfastError } from "./errors.ts";
import { safely } from "./safely.ts";
import { excerpt } from "./values/excerpt.ts";
import { isList, isRecord, spokenKind, spokenStranger } from "./values/spoken-kind.ts";

/**
 * The shape of what callers give, checked where it enters: JavaScript lets
 * anything through. Errors name the place and what was there, never its value.
 */

/** No promise either, nor a Date and the like: without fields they would pass for no options. @throws HoldfastError `OPTION_INVALID` */
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
  return stranger === "an AbortSignal" ? " Write { signal } for it." : "";
}

/**
 * What `read` finds in something that a caller gave: a getter or a proxy runs
 * code of theirs, and what that throws has no code.
 * @throws HoldfastError `OPTION_INVALID`
 */
export function readGiven<T>(place: string, read: () => T): T {
  try {
    return read();
  } catch (cause) {
    throw new HoldfastError(
      "OPTION_INVALID",
      `Expected ${place} to be readable; it threw when it was read, see the cause. Nothing was written.`,
      { option: place },
      { cause },
    );
  }
}

/** @throws HoldfastError `OPTION_INVALID` */
export function givenList<T>(
  place: string,
  given: readonly T[],
  itemsMax: number = Number.MAX_SAFE_INTEGER,
): readonly T[] {
  if (!isList(given)) throw givenInvalid(place, "a list", given);
  const length = readGiven(place, () => given.length);
  if (length <= itemsMax) return readGiven(place, () => Array.from(given));
  throw new HoldfastError(
    "OPTION_INVALID",
    `Expected ${place} to be a list of at most ${itemsMax}; got one of ${length}.`,
    { option: place },
  );
}

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
  if (known === undefined) return options;
  const unknown = unknownIn("options", options, known);
  if (unknown !== undefined) throw optionUnknown(unknown, known);
  return fieldsOf(options, known);
}

/**
 * Something that a caller describes; a property that it does not have is a
 * slip of the pen. @throws HoldfastError `OPTION_INVALID`
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
    `There is no ${excerpt(unknown)} in ${place}. There are: ${known.join(", ")}.`,
    { option: unknown },
  );
}

function unknownIn(place: string, given: object, known: readonly string[]): string | undefined {
  const names = readGiven(place, () => Object.keys(given));
  return names.find((name) => !known.includes(name));
}

/** A copy, so that nothing is read twice that could answer otherwise, or throw, the second time. */
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
    `There is no option ${excerpt(name)}. There are: ${known.join(", ")}.`,
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

/** For signals that are not given to a database, which checks them itself. @throws HoldfastError `OPTION_INVALID` */
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

export function givenInvalid(place: string, expected: string, given: unknown): HoldfastError {
  return new HoldfastError(
    "OPTION_INVALID",
    `Expected ${place} to be ${expected}; got ${spokenKind(given)}.`,
    { option: place },
  );
}

/** True for text that every column takes: without U+0000 and halves of characters. */
export function isStorable(text: unknown): text is string {
  return typeof text === "string" && !text.includes("\0") && text.isWellFormed();
}

/**
 * The text itself is not in the error: what people write into reasons and
 * metadata is nobody else's business.
 *
 * @throws HoldfastError `NAME_INVALID`
 */
export function checkedText(what: string, text: string, charactersMax: number = 128): string {
  if (isStorable(text) && text.length > 0 && text.length <= charactersMax) return text;
  const length = typeof text === "string" ? text.length : undefined;
  throw new HoldfastError(
    "NAME_INVALID",
    `${what} is a text of 1 to ${charactersMax} characters without U+0000 and halves of characters; ` +
      `got ${length === undefined ? typeof text : `${length} characters`}.`,
    { what, ...(length !== undefined && { length }) },
  );
}

/** A text in a filter: any that a column could hold. @throws HoldfastError `OPTION_INVALID` */
export function checkedFilterText(option: string, text: string): string {
  if (isStorable(text)) return text;
  throw new HoldfastError(
    "OPTION_INVALID",
    `Option ${option} is a text without U+0000 and halves of characters, since nothing stored holds those.`,
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
    `Option ${what} is a whole number from ${min} to ${max}; got ${kindOfCount(count, min)}.`,
    { option: what },
  );
}

/** What is wrong with it, without the number: it may be a user's. */
function kindOfCount(count: unknown, min: number): string {
  if (typeof count !== "number") return typeof count;
  if (!Number.isSafeInteger(count)) return "a number that is not such";
  return count < min ? "a smaller one" : "a larger one";
}

const instantMax = 8.64e15;

/** An instant: whole milliseconds since 1970 that a Date can show. */
export function checkedInstant(what: string, instant: number): number {
  if (Number.isSafeInteger(instant) && instant >= 0 && instant <= instantMax) return instant;
  throw new HoldfastError(
    "OPTION_INVALID",
    `Option ${what} is an instant in whole milliseconds since 1970, such as Date.now(), up to ${instantMax}; got ${kindOfCount(instant, 0)}.`,
    { option: what },
  );
}

/** The same for a text that may be absent. @throws HoldfastError `NAME_INVALID` */
export function optionalText(
  what: string,
  text: string | null | undefined,
  charactersMax: number,
): string | null {
  return text === null || text === undefined ? null : checkedText(what, text, charactersMax);
}
