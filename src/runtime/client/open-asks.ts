import type { ExecutionEvent } from "../../model/execution/event.ts";
import { isHistoryEvent } from "../../model/execution/history-event.ts";
import { openWaits, type OpenWait } from "../../model/execution/open-waits.ts";
import type { Executions } from "../../stores/execution/executions.ts";
import type { ExecutionSummary } from "../../stores/execution/read/summary.ts";
import { everyItem } from "../../stores/every-page.ts";

/** The events that open or end waits. Results of steps are left out, since they may be many and large. */
const askingKinds: readonly ExecutionEvent["kind"][] = [
  "childRequested",
  "delayRequested",
  "receiveRequested",
  "receiveTimedOut",
  "signalReceived",
  "stepAttemptFailed",
  "stepBegan",
];
const asksMax = 200;
const answersMax = 1_000;

/**
 * The open waits of a run, from its last requests, however long ago. Empty if
 * too many responses arrived since to read them for a view.
 */
export async function openAsks(
  executions: Pick<Executions, "events" | "responses">,
  { id, state }: ExecutionSummary,
  now: number,
): Promise<readonly OpenWait[]> {
  const { items } = await executions.events(id, {
    newestFirst: true,
    kinds: askingKinds,
    limit: asksMax,
  });
  const asked = items.filter(({ version }) => version >= state.historyFrom).toReversed();
  const first = asked[0]?.event;
  if (first === undefined) return [];
  // Earlier responses belong to none of these requests.
  const from = isHistoryEvent(first) ? first.seen + 1 : 0;
  const answers = await everyItem(
    (page) => executions.responses(id, { ...page, from }),
    answersMax,
  );
  if (answers.isCut) return [];
  // Ends of steps were not read, so a failed step counts as open until its next attempt is due.
  return openWaits(asked, answers.items, now).filter(
    (wait) => wait.kind !== "retry" || wait.until > now,
  );
}
