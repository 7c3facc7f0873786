import { HoldfastError } from "../../model/errors.ts";
import type { CliContext } from "../context.ts";

/**
 * Asks before something that cannot be taken back, unless `--yes` was given.
 * Where nobody can be asked, it must have been.
 *
 * @throws HoldfastError `OPTION_INVALID`
 */
export async function confirmed(
  context: CliContext,
  question: string,
  yes: boolean | undefined,
): Promise<boolean> {
  if (yes === true) return true;
  const { ask } = context.host;
  if (ask === undefined || context.isJson)
    throw new HoldfastError(
      "OPTION_INVALID",
      `${question} Nobody can be asked here, so nothing was done: say --yes.`,
      { option: "yes" },
    );
  const answer = await ask(`${question} [y/N] `);
  return /^\s*y(es)?\s*$/i.test(answer);
}
