import { isHoldfastError } from "../../model/errors.ts";
import { parseProcessId } from "../../model/ids/process-id.ts";
import { occurrenceNotFound } from "../../model/trigger/errors.ts";
import { storeOperation, type StoreOperation } from "../../sql/operation.ts";
import { isDamage, type Damaged, type Sifted } from "../damage.ts";
import { optionsAndWait, type Call } from "../method.ts";
import type { ProcessCancelOptions } from "../process/context.ts";
import { foundProcess, type ProcessRoot } from "../process/process-row.ts";
import type { TriggerContext } from "./context.ts";
import { checkedOccurrenceKey, deliveriesOf, foundOccurrence } from "./occurrence-row.ts";

interface CancelOccurrence {
  readonly key: string;
  /** What each process is asked with. */
  readonly request: Pick<ProcessCancelOptions, "reason">;
}

export function givenCancelOccurrence(
  { processes }: TriggerContext,
  key: string,
  options?: ProcessCancelOptions,
): Call<CancelOccurrence> {
  const { options: request, wait } = optionsAndWait(options, ["reason"]);
  // A wrong reason is refused now, whatever there is to be cancelled.
  processes.cancel.prepare("trigger", request);
  return { input: { key: checkedOccurrenceKey(key), request }, wait };
}

/**
 * Asks all processes that an occurrence has started and that still run to
 * stop. Answers which; asking them again for the same reason changes nothing.
 * One that cannot be read is named, and the others are asked.
 *
 * @throws HoldfastError `OCCURRENCE_NOT_FOUND`
 */
export const cancelOccurrence: StoreOperation<
  TriggerContext,
  CancelOccurrence,
  Sifted<string>
> = storeOperation("cancelOccurrence", {
  key: (input: CancelOccurrence) => input.key,
  *one({ processes }: TriggerContext, { key, request }) {
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
    // The one order in which several processes are locked: that of their keys.
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

/** The codes of a process that has ended, perhaps only just now, or is no more. */
const over: ReadonlySet<string> = new Set([
  "PROCESS_NOT_FOUND",
  "PROCESS_TERMINAL",
  "PROCESS_PRUNED",
]);

/** Goes on past a process that is over, and names one that is damaged: both show before anything is written. */
function passOver(error: unknown, process: string, damaged: Damaged[]): void {
  if (isHoldfastError(error) && over.has(error.code)) return;
  if (!isDamage(error)) throw error;
  damaged.push({ table: "holdfast_process", key: process });
}
