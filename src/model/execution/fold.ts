import type { ExecutionEvent, LoggedResponse, LossCount } from "./event.ts";
import {
  isLeftUnread,
  pendingAfter,
  startsOf,
  type FoldedEvent,
  type Renewal,
} from "./fold-pending.ts";
import { isHistoryEvent } from "./history-event.ts";
import type { ExecutionState, Lifecycle } from "./state.ts";

/**
 * Returns the state of an execution according to its log, read from the newest event backwards. It
 * is written separately from the transitions on purpose: property tests compare the stored state,
 * which the transitions made, with it. Renewals leave no event, so a caller that knows some may
 * pass them.
 */
export function foldExecution(
  events: readonly FoldedEvent[],
  responses: readonly LoggedResponse[],
  renewals: readonly Renewal[] = [],
): ExecutionState {
  const created = events[0]?.event;
  if (created?.kind !== "created") throw new Error("A log begins with its creation.");
  const lost = messageLost(events, responses);
  if (lost !== undefined) throw new Error(`Message ${lost} came before the timeout behind it.`);
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
    pending: pendingAfter(events, responses, (version, seq) =>
      renewals.filter((renewal) => renewal.version === version && renewal.responses === seq),
    ),
    lifecycle: lifecycleAfter(newestFirst, created.isPaused),
    failures: started.filter(({ event }) => isFailure(event)).length,
    ...deathsInARow(newestFirst),
    retry: lock?.kind === "locked" ? lock.retry : null,
    codeVersion: codeVersion ?? created.codeVersion,
    incompatible: incompatibleAfter(events, created.isPaused),
    ...startsOf(events),
    // Responses of earlier runs may have been pruned with their events.
    responses: Math.max(responses.at(-1)?.seq ?? 0, events.at(-1)?.responses ?? 0),
  };
}

function isFailure(event: ExecutionEvent): boolean {
  return event.kind === "attemptFailed" || lossOf(event) === "attempt";
}

/** Lost workers count until an event shows that the run makes progress. */
function deathsInARow(
  newestFirst: readonly FoldedEvent[],
): Pick<ExecutionState, "deaths" | "aloneDeaths"> {
  let deaths = 0;
  let aloneDeaths = 0;
  let isOfCleanup = true;
  for (const { event } of newestFirst) {
    const counts = lossOf(event);
    if (counts === "death" || counts === "aloneDeath") deaths += 1;
    if (counts === "aloneDeath" && isOfCleanup) aloneDeaths += 1;
    if (event.kind === "cancellationRequested") isOfCleanup = false;
    // A step that begins may be the one that kills.
    if (event.kind === "stepBegan") continue;
    if (counts === "attempt" || endsDeaths.has(event.kind) || isHistoryEvent(event)) break;
  }
  return { deaths, aloneDeaths };
}

const endsDeaths: ReadonlySet<ExecutionEvent["kind"]> = new Set([
  "attemptFailed",
  "continued",
  "forked",
  "unparked",
] as const);

function lossOf(event: ExecutionEvent): LossCount | undefined {
  return event.kind === "ownerDied" || event.kind === "attemptTimedOut" ? event.counts : undefined;
}

/** Returns the lifecycle set by the newest event that sets one. */
export function lifecycleAfter(
  newestFirst: readonly FoldedEvent[],
  isCreatedPaused: boolean,
): Lifecycle {
  const meaning: Readonly<Record<string, Lifecycle>> = {
    paused: "paused",
    unpaused: "active",
    cancellationRequested: "cancelling",
    parked: "parked",
    unparked: "active",
    // Only an active execution can be continued or copied.
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

/**
 * Returns the code versions of all parkings since the last one without a version, or the last event
 * that cleared them.
 */
function incompatibleAfter(
  events: readonly FoldedEvent[],
  isCreatedPaused: boolean,
): readonly string[] {
  let versions: string[] = [];
  events.forEach(({ event }, index) => {
    if (
      ["unparked", "continued", "forked"].includes(event.kind) ||
      (event.kind === "parked" && event.codeVersion === null) ||
      (event.kind === "cancellationRequested" &&
        lifecycleAfter(events.slice(0, index).toReversed(), isCreatedPaused) === "parked")
    )
      versions = [];
    else if (event.kind === "parked") {
      const { codeVersion } = event;
      versions = versions.filter((version) => version !== codeVersion);
      versions.push(codeVersion ?? "");
      // Short enough for an index. The newest version stays.
      while (versions.length > 1 && JSON.stringify(versions).length > 512)
        versions = versions.slice(1);
    }
  });
  return versions;
}

/**
 * Returns the first message that the code could never receive: a timeout of its receive was
 * appended after it, by code that had not been given it.
 */
function messageLost(
  events: readonly FoldedEvent[],
  responses: readonly LoggedResponse[],
): number | undefined {
  const taken = new Set<number>();
  for (const [index, { event, responses: there }] of events.entries()) {
    if (event.kind === "signalReceived") taken.add(event.seq);
    if (event.kind !== "receiveTimedOut" || there <= event.seen) continue;
    const before = events.slice(0, index);
    const { responsesFrom } = startsOf(before);
    const lost = responses.find(
      (arrived) =>
        arrived.response.kind === "signal" &&
        arrived.response.signal === event.signal &&
        arrived.seq > event.seen &&
        arrived.seq <= there &&
        !taken.has(arrived.seq) &&
        (arrived.seq > responsesFrom || isLeftUnread(arrived, before)),
    );
    if (lost !== undefined) return lost.seq;
  }
  return undefined;
}
