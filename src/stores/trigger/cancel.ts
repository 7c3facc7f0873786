import { isHoldfastError } from "../../model/errors.ts";
import { parseProcessId } from "../../model/process-id.ts";
import { occurrenceNotFound } from "../../model/trigger-errors.ts";
import { plainOperation } from "../../sql/operation.ts";
import type { Operation } from "../../sql/operation.ts";
import { isDamage } from "../damage.ts";
import type { Damaged, Sifted } from "../damage.ts";
import { appendProcessEvent } from "../process/append-event.ts";
import type { AppendProcessEvent } from "../process/append-event.ts";
import { foundProcess } from "../process/process-row.ts";
import type { ProcessRoot } from "../process/process-row.ts";
import { deliveriesOf, foundOccurrence } from "./occurrence-row.ts";

export interface CancelOccurrence {
  readonly key: string;
  /** The request to a process. */
  readonly requestTo: (process: string) => AppendProcessEvent;
}

/**
 * Asks all processes that an occurrence has started and that still run to
 * stop. Answers which; asking them again for the same reason changes nothing.
 * One that cannot be read is named, and the others are asked.
 *
 * @throws HoldfastError `OCCURRENCE_NOT_FOUND`
 */
export const cancelOccurrence: Operation<
  CancelOccurrence,
  Sifted<string>
> = plainOperation("cancelOccurrence", {
  key: (input: CancelOccurrence) => input.key,
  *one({ key, requestTo }) {
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
    // The one order of all who lock several processes: that of their keys.
    for (const { id } of running.toSorted((a, b) => a.key - b.key))
      try {
        yield* appendProcessEvent(requestTo(id));
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
