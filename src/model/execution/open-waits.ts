import type { ExecutionId } from "../ids/execution-id.ts";
import type { LoggedEvent, LoggedResponse } from "./event.ts";
import { isHistoryEvent } from "./history-event.ts";

/** An open request of a run: the answer has not come yet. */
export type OpenWait =
  | {
      readonly kind: "signal";
      readonly signal: string;
      readonly since: number;
      /** The instant at which the wait times out; null when it waits forever. */
      readonly until: number | null;
    }
  | { readonly kind: "sleep"; readonly since: number; readonly until: number }
  | {
      readonly kind: "child";
      readonly child: ExecutionId;
      readonly function: string;
      readonly since: number;
      /** The code of the reason why the child is parked, if the reader looked it up. */
      readonly parked?: string;
    }
  /** An answer from outside, to the external execution that stands for it. */
  | {
      readonly kind: "external";
      readonly external: ExecutionId;
      readonly since: number;
    }
  | {
      readonly kind: "retry";
      readonly step: string;
      /** The attempt that failed last. */
      readonly attempt: number;
      readonly since: number;
      readonly until: number;
    };

/** The function name of `ctx.external` requests. */
export const externalFunction = "holdfast/external";

/**
 * Returns the open waits of a run by its log, in the order of asking. The code receives responses
 * before the event that records them as seen. So a signal goes to the oldest call that had asked
 * for it by then. A sleep whose time has passed counts as ended, even before the end is recorded.
 */
export function openWaits<V>(
  events: readonly LoggedEvent<V>[],
  responses: readonly LoggedResponse<V>[],
  now: number,
): readonly OpenWait[] {
  const open = new Map<string, OpenWait>();
  const left = [...responses];
  const deliver = (upTo: number): void => {
    while (left[0] !== undefined && left[0].seq <= upTo)
      settle(open, left.shift() as LoggedResponse<V>);
  };
  for (const logged of events) {
    const { event } = logged;
    if (event.kind === "continued" || event.kind === "finished") open.clear();
    if (!isHistoryEvent(event)) continue;
    deliver(event.seen);
    note(open, logged);
  }
  deliver(Number.POSITIVE_INFINITY);
  return [...open.values()].filter((wait) => wait.kind !== "sleep" || wait.until > now);
}

function settle<V>(open: Map<string, OpenWait>, { response }: LoggedResponse<V>): void {
  switch (response.kind) {
    case "child":
      return void open.delete(response.child);
    case "delay":
      return void open.delete(response.delay);
    case "signal": {
      const asked = [...open].find(
        ([, wait]) => wait.kind === "signal" && wait.signal === response.signal,
      );
      return void (asked && open.delete(asked[0]));
    }
  }
}

function note<V>(open: Map<string, OpenWait>, { event, at: since }: LoggedEvent<V>): void {
  const call = "call" in event ? `call ${event.call}` : "";
  switch (event.kind) {
    case "receiveRequested": {
      const { signal, expiresAt: until } = event;
      return void open.set(call, { kind: "signal", signal, since, until });
    }
    case "delayRequested":
      return void open.set(event.delay, {
        kind: "sleep",
        since,
        until: event.expiresAt,
      });
    case "childRequested": {
      const { child, function: name } = event;
      return void open.set(
        child,
        name === externalFunction
          ? { kind: "external", external: child, since }
          : { kind: "child", child, function: name, since },
      );
    }
    case "stepAttemptFailed": {
      const { name: step, attempt, retryAt: until } = event;
      return void open.set(call, {
        kind: "retry",
        step,
        attempt,
        since,
        until,
      });
    }
    case "receiveTimedOut":
    case "signalReceived":
    case "stepBegan":
    case "stepFinished":
    case "transactionFinished":
      return void open.delete(call);
    default:
      return undefined;
  }
}
