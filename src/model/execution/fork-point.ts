import { isHistoryKind } from "./history-event.ts";

/** The part of an event that decides whether a retried run keeps it. */
export interface Tried {
  readonly kind: string;
  /** The outcome of a step, or of a step in a transaction. */
  readonly outcome?: unknown;
}

/**
 * True when a retried run may keep this event. It drops the events of its failure and of mere
 * waiting. It keeps everything that it achieved, so that no recorded result is computed again.
 */
export function isKeptOnRetry({ kind, outcome }: Tried): boolean {
  switch (kind) {
    case "joinNext":
    case "joinNextTooMany":
    case "joinNextTried":
    case "waiting":
    case "stepAttemptFailed":
    // Its steps begin again.
    case "stepBegan":
    // A retried run is not being cancelled.
    case "cancellationDelivered":
      return false;
    case "stepFinished":
    case "transactionFinished":
      return outcome === "completed";
    default:
      return isHistoryKind(kind);
  }
}

/** True when events after a point before this event may turn out differently. */
export function isFailureOfStep({ kind, outcome }: Tried): boolean {
  return kind === "stepAttemptFailed" || (isOutcomeOfStep(kind) && outcome !== "completed");
}

/** True for kinds whose events record in `outcome` how a step ended. */
export function isOutcomeOfStep(kind: string): boolean {
  return kind === "stepFinished" || kind === "transactionFinished";
}
