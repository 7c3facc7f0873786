import { safely } from "../safely.ts";
import { isPlainJson } from "./plain-json.ts";
import { defaultValueLimits, tooLarge, type ValueLimits } from "./value-limits.ts";
import { malformed, restoreTags } from "./value-reader.ts";
import { marker } from "./value-tags.ts";
import { writeValue } from "./value-writer.ts";

/**
 * Returns the text under which a value is stored: JSON, with tags (value-tags.ts) for Date, bigint,
 * Uint8Array, Map, Set, undefined and Error. Plain JSON stays exactly as JSON.stringify writes it,
 * with keys in insertion order.
 *
 * Shared parts come back as copies. An array keeps its items and no other properties. An object
 * without a prototype comes back with the usual one. -0 comes back as 0.
 *
 * @throws HoldfastError `NOT_SERIALIZABLE` naming the place of any other value, `VALUE_TOO_LARGE`
 * beyond the limits.
 */
export function encodeValue(value: unknown, limits: ValueLimits = defaultValueLimits): string {
  // Undefined also when a getter throws: the writer then names it.
  const text = isPlainJson(value, limits.charactersMax)
    ? safely(() => JSON.stringify(value), undefined)
    : undefined;
  if (text === undefined) return writeValue(value, "stored", limits);
  if (text.length > limits.charactersMax) {
    throw tooLarge(text.length, limits.charactersMax);
  }
  return text;
}

/**
 * Returns the value that `encodeValue` wrote.
 *
 * @throws HoldfastError `VALUE_MALFORMED` for any other text.
 */
export function decodeValue(text: string): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // The parser's message would quote the text, which is the user's data.
    throw malformed("it is not JSON");
  }
  // The writer never escapes a character of the marker, so a text without the marker has no tags.
  return text.includes(marker) ? restoreTags(value) : value;
}
