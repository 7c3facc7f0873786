import { HoldfastError } from "../../model/errors.ts";
import { isStorable } from "./checks.ts";

/** What a log message or a stack may take: notes are for people, not for data. */
const textBytesMax = 64 * 1024;

/**
 * @throws HoldfastError `VALUE_TOO_LARGE` for a text above 64 KiB as UTF-8;
 *   `TEXT_INVALID` for one that no column takes.
 */
export function assertFits(what: string, text: string): void {
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
  throw new HoldfastError(
    "VALUE_TOO_LARGE",
    `${what} takes ${size} bytes; the limit is ${textBytesMax}. Cut it, or store the bulk elsewhere and name the place.`,
    { size, limit: textBytesMax },
  );
}
