import type { WaitOptions } from "../../sql/database.ts";
import { isHoldfastError } from "../../model/errors.ts";
import { isDamage } from "../../stores/damage.ts";
import type { Executions } from "../../stores/execution/executions.ts";

/**
 * Whether a worker could be given a run. One that cannot be read stays due,
 * however many workers serve its function.
 */
export async function canBeRead(
  executions: Pick<Executions, "load">,
  id: string,
  wait: WaitOptions,
): Promise<boolean> {
  try {
    await executions.load(id, wait);
    return true;
  } catch (error) {
    if (isDamage(error)) return false;
    // It was removed meanwhile: nothing of it is damaged.
    if (isHoldfastError(error) && error.code === "EXECUTION_NOT_FOUND") return true;
    throw error;
  }
}
