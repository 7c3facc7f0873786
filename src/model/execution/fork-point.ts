import { isHistoryKind } from "./history-event.ts";

/** As much of an event as tells whether a run that is tried again keeps it. */
export interface Tried {
  readonly kind: string;
  /** Of a step, or of one in a transaction. */
  readonly outcome?: unknown;
}

/**
 * True when a run that is tried again may keep this event. What it failed on
 * and what it only waited for goes; everything it had achieved stays, so that
 * no recorded result is computed again.
 */
export function isKeptOnRetry({ kind, outcome }: Tried): boolean {
  switch (kind) {
    case "joinNext":
    case "joinNextTooMany":
    case "joinNextTried":
    case "waiting":
    case "stepAttemptFailed":
    // A run that is tried again is not being cancelled.
    case "cancellationDelivered":
      return false;
    case "stepFinished":
    case "transactionFinished":
      return outcome === "completed";
    default:
      return isHistoryKind(kind);
  }
}

/** True when what comes after a point that is before this event may come out otherwise. */
export function isFailureOfStep({ kind, outcome }: Tried): boolean {
  return kind === "stepAttemptFailed" || (isOutcomeOfStep(kind) && outcome !== "completed");
}

/** True when events of this kind say in `outcome` how a step ended. */
export function isOutcomeOfStep(kind: string): boolean {
  return kind === "stepFinished" || kind === "transactionFinished";
}
