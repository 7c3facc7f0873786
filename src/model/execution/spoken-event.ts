import { unreachable } from "../errors.ts";
import { isoInstant, spokenDuration } from "../time/spoken.ts";
import type { StartAt } from "../time/instants.ts";
import { externalFunction } from "./open-waits.ts";
import type { ExecutionEvent } from "./event.ts";
import type { HistoryEvent } from "./history-event.ts";

/** An event of a log in a few words, without the values in it. */
export function spokenEvent<V>(event: ExecutionEvent<V>, at: number): string {
  switch (event.kind) {
    case "created":
      return event.scheduledAt > at
        ? `created, starts in ${spokenDuration(event.scheduledAt - at)}`
        : "created";
    case "locked":
      return `locked by a worker${event.codeVersion === null ? "" : ` with code version ${event.codeVersion}`}`;
    case "unlocked":
      return `released: ${event.reason}`;
    case "attemptFailed":
      return `attempt failed, retry in ${spokenDuration(event.dueAt - at)}`;
    case "attemptTimedOut":
      return `attempt timed out, retry in ${spokenDuration(event.dueAt - at)}`;
    case "ownerDied":
      return "its process died";
    case "cancellationRequested":
      return `cancellation requested${event.reason === null ? "" : `: ${event.reason}`}`;
    case "parked":
      return `parked: ${event.code}`;
    case "paused":
      return "paused";
    case "unpaused":
      return "resumed";
    case "unparked":
      return "unparked";
    case "continued":
      return "continued with a new input";
    case "forked":
      return `copied from ${event.from.execution} up to event ${event.from.version}`;
    case "finished":
      return `${event.resultKind === "timedOut" ? "timed out" : event.resultKind}${spokenUnread(event)}`;
    default:
      return spokenHistory(event);
  }
}

function spokenUnread({ unread = 0 }: { readonly unread?: number | undefined }): string {
  if (unread === 0) return "";
  return unread === 1 ? ", 1 message unread" : `, ${unread} messages unread`;
}

function spokenHistory<V>(event: HistoryEvent<V>): string {
  switch (event.kind) {
    case "joinSetCreated":
      return `join set ${event.joinSet}`;
    case "childRequested":
      return event.function === externalFunction
        ? `waits for an answer from outside (${event.child})`
        : `called ${event.function} (${event.child})`;
    case "delayRequested":
      return `sleeps ${spokenStart(event.startAt)}`;
    case "joinNext":
    case "joinNextTried":
      return `asked join set ${event.joinSet} for its next result`;
    case "joinNextTooMany":
      return `asked join set ${event.joinSet} for more results than it has`;
    case "waiting":
      return "waits";
    case "scheduled":
      return `started ${event.function} (${event.execution}): ${event.outcome}`;
    case "externalResolved":
      return `answered ${event.execution}`;
    case "signalReceived":
      return `received signal ${event.signal}`;
    case "receiveRequested":
      return `waits for signal ${event.signal}`;
    case "receiveTimedOut":
      return `waited for signal ${event.signal} until its timeout`;
    case "cancellationDelivered":
      return "cleans up";
    case "stepBegan":
      return `step "${event.name}" began, attempt ${event.attempt}`;
    case "stepFinished":
      return `step "${event.name}" ${event.outcome}`;
    case "transactionFinished":
      return `transaction "${event.name}" ${event.outcome}`;
    case "stepAttemptFailed":
      return `${event.isTransaction === true ? "transaction" : "step"} "${event.name}" failed, attempt ${event.attempt}`;
    case "patched":
      return `patched "${event.patch}"`;
    default:
      return unreachable(event);
  }
}

function spokenStart(startAt: StartAt): string {
  if (startAt === "now") return "no time";
  if ("at" in startAt) return `until ${isoInstant(Number(startAt.at))}`;
  return `for ${typeof startAt.in === "number" ? spokenDuration(startAt.in) : startAt.in}`;
}
