import { HoldfastError } from "../../../model/errors.ts";
import { isStorable } from "../../../model/shape.ts";

/** What a log message or a stack may take: notes are for people, not for data. */
const textBytesMax = 64 * 1024;

/**
 * @throws HoldfastError `VALUE_TOO_LARGE` for a text above 64 KiB as UTF-8;
 *   `TEXT_INVALID` for one that no column takes.
 */
export function assertFits(what: string, text: string): void {
  // Every UTF-16 unit takes a byte at least, so what is far too long need not be read.
  if (typeof text === "string" && text.length > textBytesMax)
    throw textTooLarge(what, text.length, "at least ");
  if (!isStorable(text))
    throw new HoldfastError(
      "TEXT_INVALID",
      `${what} holds U+0000 or half a character (a lone surrogate), or is no text; nothing was written. ` +
        'Replace those, as text.replaceAll("\\0", "").toWellFormed() does.',
      { what },
    );
  // A UTF-16 unit takes at most three bytes, so most texts need no counting.
  if (text.length * 3 <= textBytesMax) return;
  const size = new TextEncoder().encode(text).length;
  if (size <= textBytesMax) return;
  throw textTooLarge(what, size);
}

function textTooLarge(what: string, size: number, atLeast = ""): HoldfastError {
  return new HoldfastError(
    "VALUE_TOO_LARGE",
    `${what} takes ${atLeast}${size} bytes; the limit is ${textBytesMax}. Cut it, or store the bulk elsewhere and name the place.`,
    { size, limit: textBytesMax },
  );
}
