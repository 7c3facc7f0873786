import type { ExecutionEvent } from "../../../model/execution-event.ts";
import { isHistoryEvent } from "../../../model/history-event.ts";
import type { AppendEvents } from "./append.ts";

/**
 * How much an append moves besides the log. What moves little can be done
 * with fewer statements, and on Postgres together with others.
 */

/** Kinds of history events for which more than the version must be known. */
const asking: ReadonlySet<string> = new Set([
  "joinNext",
  "waiting",
  "signalReceived",
]);

/** Kinds that name what is to answer them, which `one` checks. */
const requesting: ReadonlySet<string> = new Set([
  "delayRequested",
  "childRequested",
]);

/** True for what a workflow records without asking for a response: only version and deaths change. */
export function changesVersionAlone(event: ExecutionEvent): boolean {
  return isHistoryEvent(event) && !asking.has(event.kind);
}

/** True for an append that writes nothing but its events and the version. */
export function isQuiet({
  events,
  children,
  respondTo,
}: AppendEvents): boolean {
  return (
    events.length > 0 &&
    (children === undefined || children.length === 0) &&
    respondTo === undefined &&
    events.every(
      (event) => !requesting.has(event.kind) && changesVersionAlone(event),
    )
  );
}

/** True for the end of an execution and nothing else. */
export function isFinish({ events, children }: AppendEvents): boolean {
  return (
    events.length === 1 &&
    events[0]?.kind === "finished" &&
    (children === undefined || children.length === 0)
  );
}
