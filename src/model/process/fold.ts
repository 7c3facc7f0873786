import { coreTypes } from "./event-type.ts";
import type { ProcessEventFacts, ProcessState, SessionScope } from "./process.ts";

/**
 * Returns the state of a process according to its log, each part read from the whole log. It is
 * written separately from `afterProcessEvent` on purpose: property tests compare the stored state,
 * which that function made, with it.
 */
export function foldProcess(
  events: readonly ProcessEventFacts[],
  wakeTarget: SessionScope | null,
): ProcessState {
  const ofType = (type: string): readonly ProcessEventFacts[] =>
    events.filter((event) => event.type === type);
  const ended = events.find(({ end }) => end !== null);
  const started = ofType(coreTypes.started);
  const pruned = ofType(coreTypes.pruned)[0];
  const waits = events.filter(
    ({ type, end }) => type === coreTypes.waiting || type === coreTypes.resumed || end !== null,
  );
  const isAimless = pruned !== undefined || ofType(coreTypes.wakeTargetCleared).length > 0;
  return {
    sequence: events.at(-1)?.sequence ?? 0,
    updatedAt: Math.max(...events.map(({ at }) => at)),
    status: ended?.end ?? "running",
    startedAt: started[0]?.at ?? null,
    attempts: started.length,
    cancelRequestedAt: ofType(coreTypes.cancelRequested)[0]?.at ?? null,
    wait: waits.at(-1)?.wait ?? null,
    externalSequence:
      pruned === undefined ? (ofType(coreTypes.externalRef).at(-1)?.sequence ?? null) : null,
    wakeTarget: isAimless ? null : wakeTarget,
    endedAt: ended?.at ?? null,
    endedSequence: ended?.sequence ?? null,
    prunedAt: pruned?.at ?? null,
  };
}
