import type { Created, LoggedEvent, LoggedResponse } from "../../../model/execution/event.ts";
import { isHistoryEvent, type HistoryEvent } from "../../../model/execution/history-event.ts";
import { isMadeByCall } from "./call-shape.ts";

export interface LoggedHistory {
  readonly version: number;
  readonly at: number;
  readonly event: HistoryEvent<unknown>;
}

/** A delivery to the code: an outcome that the run recorded itself, or a response from elsewhere. */
export type Delivery = LoggedHistory | LoggedResponse<unknown>;

export function isResponse(delivery: Delivery): delivery is LoggedResponse<unknown> {
  return "response" in delivery;
}

/** The failed attempts of a step or a transaction, and the earliest start of the next. */
export interface FailedAttempts {
  readonly count: number;
  readonly retryAt: number;
}

/** An attempt that was announced. */
interface BegunAttempt {
  readonly name: string;
  readonly attempt: number;
}

/** The creation of a run, and the version of the event that gave its input. */
interface ScriptStart {
  readonly created: Pick<Created<unknown>, "forkedFrom" | "begun">;
  readonly historyFrom: number;
}

/**
 * Adds the steps that the retried run had begun. The next attempt of each is a repeat. A later
 * pass numbers its calls from 1 again, so none of them is one of these.
 */
function addBegun(
  begun: Map<number, BegunAttempt>,
  failed: ReadonlyMap<number, FailedAttempts>,
  { created, historyFrom }: ScriptStart,
): void {
  if (historyFrom > (created.forkedFrom?.version ?? 0)) return;
  for (const { call, name } of created.begun ?? []) {
    const attempt = (failed.get(call)?.count ?? 0) + 1;
    begun.set(call, { name, attempt });
  }
}

/** The log of a run as its code sees it: see `scriptOf`. */
export interface Script {
  readonly deliveries: readonly Delivery[];
  /** Responses that no event has seen: they come after all deliveries. */
  readonly later: readonly LoggedResponse<unknown>[];
  /** The first event of each call. */
  readonly recorded: ReadonlyMap<number, LoggedHistory>;
  readonly failed: ReadonlyMap<number, FailedAttempts>;
  /** The last attempt of each step that was announced by this run, or by the run that it retries. */
  readonly begun: ReadonlyMap<number, BegunAttempt>;
  /** The highest call in the log. */
  readonly lastCall: number;
  /** The last call whose request, and every earlier request, is known to be appended: a later event counts these calls. */
  readonly requestedUpTo: number;
  readonly patches: ReadonlySet<string>;
  /** The code ran after the whole log, and rested. */
  readonly endsAtRest: boolean;
}

/** Kinds that settle a call and are delivered in turn. All other kinds are requests: matched, never delivered. */
const outcomes: ReadonlySet<string> = new Set([
  "stepFinished",
  "transactionFinished",
  "receiveTimedOut",
  "scheduled",
  "cancellationDelivered",
]);

/** Kinds whose `call` is the number of calls made so far, not the number of a call. */
const counting: ReadonlySet<string> = new Set(["waiting", "cancellationDelivered"]);

/**
 * Turns the log of a run into the deliveries to its code, in order. Before each event come the
 * responses that had been seen when it was appended. The event itself follows if it is an
 * outcome.
 */
export function scriptOf(
  history: readonly LoggedEvent<unknown>[],
  responses: readonly LoggedResponse<unknown>[],
  start: ScriptStart,
): Script {
  const deliveries: Delivery[] = [];
  const recorded = new Map<number, LoggedHistory>();
  const failed = new Map<number, FailedAttempts>();
  const begun = new Map<number, BegunAttempt>();
  const patches = new Set<string>();
  const copiedUpTo = start.created.forkedFrom?.version ?? 0;
  let isOwn = false;
  let lastCall = 0;
  let requestedUpTo = 0;
  let next = 0;
  let endsAtRest = false;
  for (const logged of history) {
    if (!isHistoryEvent<unknown>(logged.event)) continue;
    const item = logged as LoggedHistory;
    const { event } = item;
    if (!isOwn && item.version > copiedUpTo) {
      isOwn = true;
      addBegun(begun, failed, start);
    }
    for (
      let response = responses[next];
      response !== undefined && response.seq <= event.seen;
      response = responses[next]
    ) {
      deliveries.push(response);
      next += 1;
    }
    endsAtRest = event.kind === "waiting";
    lastCall = Math.max(lastCall, event.call);
    if (counting.has(event.kind)) requestedUpTo = Math.max(requestedUpTo, event.call);
    if (event.kind === "patched") patches.add(event.patch);
    if (event.kind === "stepAttemptFailed")
      failed.set(event.call, { count: event.attempt, retryAt: event.retryAt });
    if (event.kind === "stepBegan" && isOwn) begun.set(event.call, event);
    if (outcomes.has(event.kind)) deliveries.push(item);
    if (isMadeByCall(event) && !recorded.has(event.call)) recorded.set(event.call, item);
  }
  if (!isOwn) addBegun(begun, failed, start);
  return {
    deliveries,
    later: responses.slice(next),
    recorded,
    failed,
    begun,
    lastCall,
    requestedUpTo,
    patches,
    endsAtRest,
  };
}
