import { safely } from "../safely.ts";
import { isPlainJson } from "./plain-json.ts";
import { withSortedKeys } from "./sorted-keys.ts";
import { defaultValueLimits, tooLarge, type ValueLimits } from "./value-limits.ts";
import { writeValue } from "./value-writer.ts";

/**
 * Returns the same text for equal values, for hashing. Object keys are sorted by UTF-16 code unit
 * and numbers are written as JavaScript does (both as in RFC 8785). Values beyond JSON are written
 * by their tags. Maps and Sets keep their order, which a program can observe. An undefined property
 * differs from a missing one. Stacks of errors are omitted.
 */
export function canonicalText(value: unknown, limits: ValueLimits = defaultValueLimits): string {
  const { charactersMax } = limits;
  // The fallback writer names the fault and its place. For 1,900 characters of a component the
  // writer took 39 µs; this way takes 24 µs, most of them in native code.
  const text = safely(() => plainText(value, charactersMax), undefined);
  if (text === undefined) return writeValue(value, "canonical", limits);
  if (text.length > charactersMax) throw tooLarge(text.length, charactersMax);
  return text;
}

function plainText(value: unknown, charactersMax: number): string | undefined {
  if (!isPlainJson(value, charactersMax)) return undefined;
  const sorted = withSortedKeys(value);
  return sorted === undefined ? undefined : JSON.stringify(sorted);
}

/**
 * Returns the text to hash for a value. The domain separates equal values of different meaning. The
 * version allows the meaning to change later.
 */
export function hashInput(
  domain: string,
  version: number,
  value: unknown,
  limits: ValueLimits = defaultValueLimits,
): string {
  return hashedText(domain, version, canonicalText(value, limits));
}

/** Returns the text to hash when the canonical text is already known. */
export function hashedText(domain: string, version: number, text: string): string {
  return `holdfast:${domain}:${version}:${text}`;
}
