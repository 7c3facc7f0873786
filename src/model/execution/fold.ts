import type { ExecutionEvent, ExecutionRole, LoggedResponse } from "./event.ts";
import { pendingAfter, startsOf, type FoldedEvent, type Renewal } from "./fold-pending.ts";
import { isHistoryEvent } from "./history-event.ts";
import type { ExecutionState, Lifecycle } from "./state.ts";

/**
 * The state that a log says an execution is in, read from the newest event
 * backwards. It is written apart from the transitions on purpose: the property
 * tests hold the stored state, which they made, to this. Renewals leave no
 * event: who knows of some may give them.
 */
export function foldExecution(
  events: readonly FoldedEvent[],
  responses: readonly LoggedResponse[],
  renewals: readonly Renewal[] = [],
): ExecutionState {
  const created = events[0]?.event;
  if (created?.kind !== "created") throw new Error("A log begins with its creation.");
  const newestFirst = events.toReversed();
  const since = (...kinds: readonly string[]): readonly FoldedEvent[] => {
    const end = newestFirst.findIndex(({ event }) => kinds.includes(event.kind));
    return end < 0 ? newestFirst : newestFirst.slice(0, end);
  };
  const started = since("continued", "forked", "created");
  const lock = newestFirst.find(({ event }) => event.kind === "locked")?.event;
  const codeVersion = newestFirst
    .map(({ event }) => (event.kind === "locked" ? event.codeVersion : null))
    .find((version) => version !== null);
  return {
    role: created.role,
    version: events.at(-1)?.version ?? 0,
    pending: pendingAfter(events, responses, renewals),
    lifecycle: lifecycleAfter(newestFirst, created.isPaused),
    failures: started.filter(({ event }) => isFailure(event)).length,
    deaths: deathsInARow(created.role, newestFirst),
    retry: lock?.kind === "locked" ? lock.retry : null,
    codeVersion: codeVersion ?? created.codeVersion,
    incompatible: incompatibleAfter(events, created.isPaused),
    ...startsOf(events),
    // Those of earlier runs may have been pruned, with their events.
    responses: Math.max(responses.at(-1)?.seq ?? 0, events.at(-1)?.responses ?? 0),
  };
}

function isFailure(event: ExecutionEvent): boolean {
  return (
    event.kind === "attemptFailed" ||
    event.kind === "attemptTimedOut" ||
    (event.kind === "ownerDied" && event.counts === "attempt")
  );
}

/** Whether it tells that nothing came of a worker that ran a workflow: it died, or its lock ran out. */
function isDeath(role: ExecutionRole, event: ExecutionEvent): boolean {
  return event.kind === "ownerDied"
    ? event.counts === "death"
    : event.kind === "attemptTimedOut" && role === "workflow";
}

function deathsInARow(role: ExecutionRole, newestFirst: readonly FoldedEvent[]): number {
  let deaths = 0;
  for (const { event } of newestFirst) {
    if (isDeath(role, event)) deaths += 1;
    else if (
      isHistoryEvent(event) ||
      ["ownerDied", "continued", "forked", "unparked"].includes(event.kind)
    )
      break;
  }
  return deaths;
}

function lifecycleAfter(newestFirst: readonly FoldedEvent[], isCreatedPaused: boolean): Lifecycle {
  const meaning: Readonly<Record<string, Lifecycle>> = {
    paused: "paused",
    unpaused: "active",
    cancellationRequested: "cancelling",
    parked: "parked",
    unparked: "active",
    // Only what is active can start anew.
    continued: "active",
    forked: "active",
    finished: "active",
  };
  let wasLocked = false;
  for (const { event } of newestFirst) {
    if (event.kind === "locked") wasLocked = true;
    const lifecycle = meaning[event.kind];
    // Other code has taken it since.
    if (lifecycle === "parked" && wasLocked) return "active";
    if (lifecycle !== undefined) return lifecycle;
  }
  return isCreatedPaused ? "paused" : "active";
}

/** The versions of the parkings since the last one that was undone by hand, or had none. */
function incompatibleAfter(
  events: readonly FoldedEvent[],
  isCreatedPaused: boolean,
): readonly string[] {
  let versions: string[] = [];
  events.forEach(({ event }, index) => {
    const before = events.slice(0, index).toReversed();
    if (
      ["unparked", "continued", "forked"].includes(event.kind) ||
      (event.kind === "parked" && event.codeVersion === null) ||
      (event.kind === "cancellationRequested" &&
        lifecycleAfter(before, isCreatedPaused) === "parked")
    )
      versions = [];
    else if (event.kind === "parked") {
      const { codeVersion } = event;
      versions = versions.filter((version) => version !== codeVersion);
      versions.push(codeVersion ?? "");
      // Short enough for an index; the newest stays.
      while (versions.length > 1 && JSON.stringify(versions).length > 512)
        versions = versions.slice(1);
    }
  });
  return versions;
}
