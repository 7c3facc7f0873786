import type { CliContext } from "../../context.ts";
import { givenJson } from "../../text/json.ts";

/** What `--value` gives: JSON, or `-` for what is on standard input. @throws HoldfastError `OPTION_INVALID` */
export async function givenValue(
  { host }: CliContext,
  text: string | undefined,
  fallback: unknown,
): Promise<unknown> {
  return text === undefined ? fallback : givenJson("--value", text, host);
}
