import type { Executions } from "../../stores/execution/executions.ts";
import { eventsAfter, loadedWhole, responsesAfter } from "../worker/hot/history.ts";
import { historyDocument, type RunHistory } from "./run-history.ts";

/** Kinds that tell how the log was made, not what the run did. */
const unrecorded: ReadonlySet<string> = new Set(["created", "forked"]);

/**
 * Reads the history of a run so far. It is read in pages while the run may continue: events
 * first, since their earlier responses are there by then.
 */
export async function historyOf(
  executions: Executions,
  id: string,
  payload: string | null,
): Promise<RunHistory> {
  const pages = { pages: { executions } };
  for (;;) {
    const loaded = await executions.load(id);
    const { codeVersion } = await executions.get(id);
    const events = await eventsAfter(pages, loaded.id, loaded.historyFrom);
    // The run has started its next pass since: the events belong to the earlier pass.
    if (events.some(({ event }) => event.kind === "continued")) continue;
    const later = await responsesAfter(pages, loaded.id, loaded.responsesFrom);
    const { unreadSignals } = await loadedWhole(pages, {
      ...loaded,
      hasMoreHistory: false,
      hasMoreResponses: false,
    });
    return historyDocument({
      loaded,
      codeVersion,
      payload,
      events: events.filter(({ event }) => !unrecorded.has(event.kind)),
      responses: [...unreadSignals, ...later],
    });
  }
}
