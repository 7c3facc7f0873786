import type { Branded } from "./brand.ts";
import { HoldfastError } from "../errors.ts";
import { excerpt } from "../values/excerpt.ts";
import { malformedId } from "./malformed-id.ts";

/**
 * The id of a set of children and delays that an execution waits for together, as `<kind>:<name>`.
 * The kinds separate the namespaces: a set that the user named "7" (`n:7`) is not the one made for
 * call 7 (`o:7`). After a new start under the same id, the number of that start follows the kind
 * (`n2:7`), so names may be reused.
 */
export type JoinSetId = Branded<"JoinSetId">;

// Excludes "_", "." and ":", which separate the parts of derived ids.
const nameAlphabet = "[A-Za-z0-9/-]{1,64}";
const namePattern = new RegExp(`^${nameAlphabet}$`);
const idPattern = new RegExp(`^[ong]([1-9][0-9]{0,15})?:${nameAlphabet}$`);

/** Returns the set that the user named, in the run after the given number of new starts. */
export function namedJoinSet(name: string, continuation = 0): JoinSetId {
  if (typeof name === "string" && namePattern.test(name)) return setOf("n", name, continuation);
  const given = typeof name === "string" ? name : typeof name;
  throw new HoldfastError(
    "NAME_INVALID",
    `The name of a join set must be a string of 1 to 64 characters of A-Z, a-z, 0-9, "/" and "-"; got ${excerpt(given)}.`,
    { name: given.slice(0, 80) },
  );
}

/** Returns the set made for a single call (a child, a sleep), named by the call's number. */
export function oneOffJoinSet(callNumber: number, continuation = 0): JoinSetId {
  return setOf("o", numbered(callNumber), continuation);
}

/** Returns a set without a name from the user, named by its number in the run. */
export function generatedJoinSet(counter: number, continuation = 0): JoinSetId {
  return setOf("g", numbered(counter), continuation);
}

/** Returns the number of new starts before the run of this set. */
export function continuationOf(joinSet: JoinSetId): number {
  return Number(joinSet.slice(1, joinSet.indexOf(":")));
}

/** @throws HoldfastError `ID_MALFORMED`. */
export function parseJoinSetId(text: string): JoinSetId {
  if (isJoinSetId(text)) return text;
  throw malformedId(
    'a join set id such as "n:payments", "o:7" or "g2:1" (kind o, n or g; the number of the new start, if any; a name of 1 to 64 characters of A-Z, a-z, 0-9, "/" and "-")',
    text,
    "joinSet",
  );
}

export function isJoinSetId(text: string): text is JoinSetId {
  if (typeof text !== "string") return false;
  const found = idPattern.exec(text);
  return found !== null && Number.isSafeInteger(Number(found[1] ?? 0));
}

function setOf(kind: "o" | "n" | "g", name: string, continuation: number): JoinSetId {
  const run = numbered(continuation);
  return `${kind}${run === "0" ? "" : run}:${name}` as JoinSetId;
}

function numbered(number: number): string {
  if (Number.isSafeInteger(number) && number >= 0) return String(number);
  throw malformedId("a join set with a number of 0 or more", String(number), "joinSet");
}
