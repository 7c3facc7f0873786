import { HoldfastError } from "../../model/errors.ts";
import type { CliContext } from "../context.ts";

/**
 * Asks before an action that cannot be undone, unless `--yes` was passed.
 * Without a terminal `--yes` is required.
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
      `${question} Not a terminal, so nothing was changed. Add --yes to confirm.`,
      { option: "yes" },
    );
  const answer = await ask(`${question} [y/N] `);
  return /^\s*y(es)?\s*$/i.test(answer);
}
