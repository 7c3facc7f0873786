import type { ExecutionEvent } from "../../model/execution/event.ts";
import { isHistoryEvent } from "../../model/execution/history-event.ts";
import { openWaits, type OpenWait } from "../../model/execution/open-waits.ts";
import type { Executions } from "../../stores/execution/executions.ts";
import type { ExecutionSummary } from "../../stores/execution/read/summary.ts";
import { everyItem } from "../every-page.ts";

/** What runs wait for, and what of it has ended. Not what steps returned: there may be many, and large ones. */
const askingKinds: readonly ExecutionEvent["kind"][] = [
  "childRequested",
  "delayRequested",
  "receiveRequested",
  "receiveTimedOut",
  "signalReceived",
  "stepAttemptFailed",
];
const asksMax = 200;
const answersMax = 1_000;

/**
 * What a run waits for, by the last things that it asked for, however much it
 * did since. Empty when too much came in between to be read for a view.
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
  // Answers that its code had before went to nothing that is among these.
  const from = isHistoryEvent(first) ? first.seen + 1 : 0;
  const answers = await everyItem(
    (page) => executions.responses(id, { ...page, from }),
    answersMax,
  );
  if (answers.isCut) return [];
  // The end of a step was not read: one that failed is open as long as its next attempt is to come.
  return openWaits(asked, answers.items, now).filter(
    (wait) => wait.kind !== "retry" || wait.until > now,
  );
}
