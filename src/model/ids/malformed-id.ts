import { HoldfastError } from "../errors.ts";
import { excerpt } from "../values/excerpt.ts";
import { spokenKind } from "../values/spoken-kind.ts";

const reasons = {
  prefix: "the prefix is another one",
  ulid: "the part after the prefix is no ULID (26 characters of 0-9 and A-Z without I, L, O, U; the first at most 7)",
  alphabet: "it contains other characters",
  length: "it is empty or too long",
  segment: 'a part between dots is not of the form "<join set>_<index>"',
  joinSet: "it does not name a join set there",
  index: "the index is not a decimal number from 1 to 2^53 - 1 without leading zeros",
} as const;

/** Why a text is not an id; found in `details.reason`. */
export type IdFault = keyof typeof reasons;

/** The error for what is not the expected id, text or not. */
export function malformedId(expected: string, text: unknown, reason: IdFault): HoldfastError {
  return new HoldfastError(
    "ID_MALFORMED",
    typeof text === "string"
      ? `Expected ${expected}, got ${excerpt(text)}: ${reasons[reason]}.`
      : `Expected ${expected}, got ${spokenKind(text)}.`,
    { reason, ...(typeof text === "string" && { text: text.slice(0, 80) }) },
  );
}
