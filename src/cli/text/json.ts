import { HoldfastError } from "../../model/errors.ts";
import { decodeValue, encodeValue } from "../../model/values/values.ts";
import type { CliHost } from "../host.ts";
import { escaped } from "./style.ts";

/**
 * A value as JSON for other programs. Values that JSON lacks (dates, bytes,
 * maps …) are written as in the database. Undefined fields are left out, and
 * instants are milliseconds.
 */
export function jsonText(value: unknown, space?: number): string {
  const text = JSON.stringify(
    value,
    function (this: unknown, key, shown: unknown) {
      const own = (this as Record<string, unknown>)[key];
      return isTagged(own) ? (JSON.parse(encodeValue(own)) as unknown) : shown;
    },
    space,
  ) as string | undefined;
  // Above U+001F `JSON.stringify` escapes no terminal control characters.
  return escaped(text ?? "null");
}

function isTagged(value: unknown): boolean {
  return (
    typeof value === "bigint" ||
    value instanceof Date ||
    value instanceof Map ||
    value instanceof Set ||
    value instanceof Uint8Array ||
    value instanceof Error
  );
}

/**
 * Parses a JSON value from an option of this name, or from standard input if
 * the option is `-`.
 *
 * @throws HoldfastError `OPTION_INVALID`
 */
export async function givenJson(
  option: string,
  text: string,
  { readInput }: Pick<CliHost, "readInput">,
): Promise<unknown> {
  const isTyped = text !== "-";
  const json = isTyped ? text : await readInput();
  try {
    return decodeValue(json);
  } catch {
    throw new HoldfastError(
      "OPTION_INVALID",
      isTyped
        ? `${option} must be JSON, such as '{"ok":true}', '"a text"' or 42. Put it in single quotes, so that the shell keeps its double quotes.`
        : `${option} - needs JSON on standard input, such as {"ok":true}, "a text" or 42, but ${json.trim() === "" ? "the input is empty" : "the input is not JSON"}.`,
      { option },
    );
  }
}
