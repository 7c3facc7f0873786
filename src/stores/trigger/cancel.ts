import { isHoldfastError } from "../../model/errors.ts";
import { parseProcessId } from "../../model/ids/process-id.ts";
import { occurrenceNotFound } from "../../model/trigger/errors.ts";
import { storeOperation, type Tx } from "../../sql/operation.ts";
import { isDamage, type Damaged, type Sifted } from "../damage.ts";
import { optionsAndWait, type Call } from "../method.ts";
import type { ProcessCancelOptions } from "../process/context.ts";
import { foundProcess, type ProcessRoot } from "../process/process-row.ts";
import type { TriggerContext } from "./context.ts";
import { checkedOccurrenceKey, deliveriesOf, foundOccurrence } from "./occurrence-row.ts";

interface CancelOccurrence {
  readonly key: string;
  /** The options of each cancel request. */
  readonly request: Pick<ProcessCancelOptions, "reason">;
}

export function givenCancelOccurrence(
  { processes }: TriggerContext,
  key: string,
  options?: ProcessCancelOptions,
): Call<CancelOccurrence> {
  const { options: request, wait } = optionsAndWait(options, ["reason"]);
  // An invalid reason is refused now, even if nothing must be cancelled.
  processes.cancel.prepare("trigger", request);
  return { input: { key: checkedOccurrenceKey(key), request }, wait };
}

/**
 * Asks all running processes that an occurrence started to stop, and returns their ids. A repeated
 * request with the same reason changes nothing. Unreadable processes are named, and the others are
 * asked.
 *
 * @throws HoldfastError `OCCURRENCE_NOT_FOUND`
 */
export const cancelOccurrence = storeOperation("cancelOccurrence", {
  key: (input) => input.key,
  *one({ processes }: TriggerContext, { key, request }: CancelOccurrence): Tx<Sifted<string>> {
    const found = yield* foundOccurrence(key);
    if (found === undefined) throw occurrenceNotFound(key);
    const damaged: Damaged[] = [];
    const running: ProcessRoot[] = [];
    for (const { process } of yield* deliveriesOf([found.key])) {
      if (process === null) continue;
      try {
        const root = yield* foundProcess(parseProcessId(process));
        if (root.state.status === "running") running.push(root);
      } catch (error) {
        passOver(error, process, damaged);
      }
    }
    const items: string[] = [];
    // Several processes are always locked in the order of their keys.
    for (const { id } of running.toSorted((a, b) => a.key - b.key))
      try {
        yield* processes.cancel.prepare(id, request)();
        items.push(id);
      } catch (error) {
        passOver(error, id, damaged);
      }
    return { items, damaged };
  },
});

/** The codes for a process that has ended, perhaps just now, or no longer exists. */
const over: ReadonlySet<string> = new Set([
  "PROCESS_NOT_FOUND",
  "PROCESS_TERMINAL",
  "PROCESS_PRUNED",
]);

/**
 * Skips a process that has ended, and names a damaged one. Both errors come before anything is
 * written.
 */
function passOver(error: unknown, process: string, damaged: Damaged[]): void {
  if (isHoldfastError(error) && over.has(error.code)) return;
  if (!isDamage(error)) throw error;
  damaged.push({ table: "holdfast_process", key: process });
}
