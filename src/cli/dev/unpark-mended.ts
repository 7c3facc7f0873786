import { isHoldfastError } from "../../model/errors.ts";
import type { Holdfast } from "../../runtime/client/holdfast.ts";

/**
 * Unparks runs of some functions that were parked because their code did not
 * match their record: the reloaded code may match. Runs parked for another
 * reason stay parked. Returns the ids of the unparked runs.
 */
export async function unparkMended(
  { executions }: Pick<Holdfast, "executions">,
  functions: readonly string[],
): Promise<readonly string[]> {
  const unparked: string[] = [];
  let after: string | undefined;
  do {
    const page = await executions.list({
      status: "parked",
      limit: 200,
      ...(after !== undefined && { after }),
    });
    for (const { id, function: name, interruption } of page.items)
      if (
        functions.includes(name) &&
        interruption?.kind === "parked" &&
        interruption.code === "NONDETERMINISM"
      ) {
        try {
          await executions.unpark(id);
          unparked.push(id);
        } catch (error) {
          // Another caller has cancelled or unparked it since.
          if (!isHoldfastError(error)) throw error;
        }
      }
    after = page.next;
  } while (after !== undefined);
  return unparked;
}
