import { safely } from "../safely.ts";
import { isPlainJson } from "./plain-json.ts";
import { defaultValueLimits, tooLarge, type ValueLimits } from "./value-limits.ts";
import { malformed, restoreTags } from "./value-reader.ts";
import { marker } from "./value-tags.ts";
import { writeValue } from "./value-writer.ts";

/**
 * The text under which a value is stored: JSON, with tags (value-tags.ts) for
 * Date, bigint, Uint8Array, Map, Set, undefined and Error. What is plain JSON
 * stays exactly what JSON.stringify writes, keys in insertion order.
 *
 * Parts that are shared come back as copies. An array keeps its items, not
 * other properties; an object without prototype comes back with the usual one;
 * -0 comes back as 0.
 *
 * @throws HoldfastError `NOT_SERIALIZABLE` naming the place of anything else,
 *   `VALUE_TOO_LARGE` beyond the limits.
 */
export function encodeValue(value: unknown, limits: ValueLimits = defaultValueLimits): string {
  // Undefined also when a getter throws: the writer says which.
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
 * The value that `encodeValue` wrote.
 *
 * @throws HoldfastError `VALUE_MALFORMED` when the text is something else.
 */
export function decodeValue(text: string): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // Its message would quote the text, which is the user's data.
    throw malformed("it is not JSON");
  }
  // The writer never escapes a character of the marker, so a text without it
  // has no tags.
  return text.includes(marker) ? restoreTags(value) : value;
}
