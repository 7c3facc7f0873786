import type { HistoryEvent } from "../../../model/execution/history-event.ts";
import type { StoredError } from "../../../model/values/stored-error.ts";
import type { AppendOutcome } from "../../../stores/execution/log/append-to.ts";
import type { AppendDraft } from "../../run/run-host.ts";
import type { RunState } from "../../run/run-state.ts";
import type { Reports } from "../../reports.ts";

type FailedStep = Extract<HistoryEvent, { readonly kind: "stepAttemptFailed" }>;

/** Reports what a durable append says of failures, and counts the runs that it started. */
export function reportAppend(
  reports: Reports,
  run: RunState,
  { events, children, starts }: AppendDraft,
  { scheduled, unread }: AppendOutcome,
): void {
  // Nearly every append is one step that completed.
  for (const event of events)
    if (event.kind === "stepAttemptFailed") reportAttempt(reports, run, event);
    else if (event.kind === "finished")
      reports.ended(runOf(run), event, unread, run.mailbox.unreadNames);
  if (children !== undefined)
    for (const { created } of children)
      if (created.role !== "external") reports.started(created.function);
  if (starts !== undefined)
    for (const [index, { created }] of starts.entries())
      if (scheduled?.[index]?.outcome === "created") reports.started(created.function);
}

function runOf({ id, definition }: RunState): { readonly id: RunState["id"]; function: string } {
  return { id, function: definition.name };
}

function reportAttempt(reports: Reports, run: RunState, event: FailedStep): void {
  const { name: step, attempt, retryAt } = event;
  reports.attemptFailed(runOf(run), { step, attempt, retryAt, error: errorOf(run, event) });
}

/** Undefined when it cannot be read, as while a payload codec fails. */
function errorOf({ host }: RunState, { error }: FailedStep): StoredError | undefined {
  try {
    return host.values.readValue(error) as StoredError;
  } catch {
    return undefined;
  }
}
