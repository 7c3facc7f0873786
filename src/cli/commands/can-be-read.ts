import type { WaitOptions } from "../../sql/database.ts";
import { isHoldfastError } from "../../model/errors.ts";
import { isDamage } from "../../stores/damage.ts";
import type { Executions } from "../../stores/execution/executions.ts";

/**
 * True if a worker could take a run. An unreadable one stays due,
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
