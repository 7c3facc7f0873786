import type { CliContext } from "../../context.ts";
import { givenJson } from "../../text/json.ts";

/** Parses `--value`: JSON, or `-` for standard input. @throws HoldfastError `OPTION_INVALID` */
export async function givenValue(
  { host }: CliContext,
  text: string | undefined,
  fallback: unknown,
): Promise<unknown> {
  return text === undefined ? fallback : givenJson("--value", text, host);
}
