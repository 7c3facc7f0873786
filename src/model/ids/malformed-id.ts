import { HoldfastError } from "../errors.ts";
import { excerpt } from "../values/excerpt.ts";
import { spokenKind } from "../values/spoken-kind.ts";

const reasons = {
  prefix: "it has another prefix",
  ulid: "the part after the prefix is not a ULID (26 characters of 0-9 and A-Z without I, L, O, U; the first at most 7)",
  alphabet: "it contains other characters",
  length: "it is empty or too long",
  segment: 'a part between dots does not have the form "<join set>_<index>"',
  joinSet: "it has an invalid join set",
  index: "the index is not a decimal number from 1 to 2^53 - 1 without leading zeros",
} as const;

/** The fault of an invalid id, found in `details.reason`. */
export type IdFault = keyof typeof reasons;

/** The error for an unexpected id, text or not. */
export function malformedId(expected: string, text: unknown, reason: IdFault): HoldfastError {
  return new HoldfastError(
    "ID_MALFORMED",
    typeof text === "string"
      ? `Expected ${expected}, got ${excerpt(text)}: ${reasons[reason]}.`
      : `Expected ${expected}, got ${spokenKind(text)}.`,
    { reason, ...(typeof text === "string" && { text: text.slice(0, 80) }) },
  );
}
