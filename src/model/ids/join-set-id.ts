import type { Branded } from "./brand.ts";
import { HoldfastError } from "../errors.ts";
import { excerpt } from "../values/excerpt.ts";
import { malformedId } from "./malformed-id.ts";

/**
 * The set of children and delays that an execution waits for together, as
 * `<kind>:<name>`. The kinds keep the namespaces apart: a set the user named
 * "7" (`n:7`) is not the one made for call 7 (`o:7`).
 */
export type JoinSetId = Branded<"JoinSetId">;

// Without "_", "." and ":", which separate the parts of derived ids.
const nameAlphabet = "[A-Za-z0-9/-]{1,64}";
const namePattern = new RegExp(`^${nameAlphabet}$`);
const idPattern = new RegExp(`^[ong]:${nameAlphabet}$`);

/** A set that the user named. */
export function namedJoinSet(name: string): JoinSetId {
  if (namePattern.test(name)) return `n:${name}` as JoinSetId;
  throw new HoldfastError(
    "NAME_INVALID",
    `A join set name is 1 to 64 of A-Z, a-z, 0-9, "/" and "-"; got ${excerpt(name)}.`,
    { name: name.slice(0, 80) },
  );
}

/** The set made for a single call (a child, a sleep), named by the call's number. */
export function oneOffJoinSet(callNumber: number): JoinSetId {
  return numbered("o", callNumber);
}

/** The set for which the user gave no name: the how-manieth of the run it is. */
export function generatedJoinSet(counter: number): JoinSetId {
  return numbered("g", counter);
}

/** @throws HoldfastError `ID_MALFORMED`. */
export function parseJoinSetId(text: string): JoinSetId {
  if (isJoinSetId(text)) return text;
  throw malformedId(
    'a join set id such as "n:payments", "o:7" or "g:1" (kind o, n or g; a name of 1 to 64 of A-Z, a-z, 0-9, "/" and "-")',
    text,
    "joinSet",
  );
}

export function isJoinSetId(text: string): text is JoinSetId {
  return typeof text === "string" && idPattern.test(text);
}

function numbered(kind: "o" | "g", number: number): JoinSetId {
  if (Number.isSafeInteger(number) && number >= 0) {
    return `${kind}:${number}` as JoinSetId;
  }
  throw malformedId("a join set numbered from 0 up", String(number), "joinSet");
}
