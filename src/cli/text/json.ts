import { HoldfastError } from "../../model/errors.ts";
import { decodeValue, encodeValue } from "../../model/values/values.ts";
import type { CliHost } from "../host.ts";

/**
 * A value as JSON for other programs. Values of runs that JSON does not have
 * (dates, bytes, maps …) are written as they are in the database; a field that
 * is undefined is left out. Instants of ours are milliseconds.
 */
export function jsonText(value: unknown, space?: number): string {
  return JSON.stringify(
    value,
    function (this: unknown, key, shown: unknown) {
      const own = (this as Record<string, unknown>)[key];
      return isTagged(own) ? (JSON.parse(encodeValue(own)) as unknown) : shown;
    },
    space,
  );
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
 * A value that was given as JSON: by an option of this name, or by standard
 * input where that says `-`.
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
        ? `${option} takes JSON, such as '{"ok":true}', '"a text"' or 42; this is none. Put it in single quotes, so that the shell leaves its double quotes alone.`
        : `${option} - takes JSON from standard input, such as {"ok":true}, "a text" or 42; ${json.trim() === "" ? "nothing came" : "what came is none"}.`,
      { option },
    );
  }
}
