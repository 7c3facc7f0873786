import { isHistoryKind } from "./history-event.ts";

/** As much of an event as tells whether a run that is tried again keeps it. */
export interface Tried {
  readonly kind: string;
  /** Of a step. */
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
      return false;
    case "stepFinished":
      return outcome === "completed";
    default:
      return isHistoryKind(kind);
  }
}

/** True when what comes after a point that is before this event may come out otherwise. */
export function isFailureOfStep({ kind, outcome }: Tried): boolean {
  return (
    kind === "stepAttemptFailed" ||
    (kind === "stepFinished" && outcome !== "completed")
  );
}
