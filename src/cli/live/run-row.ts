import { statusOf, type ExecutionStatus } from "../../model/execution/status.ts";
import type { ExecutionEvent, LoggedEvent } from "../../model/execution/event.ts";
import type { ExecutionResult } from "../../model/execution/result.ts";
import type { OpenWait } from "../../model/execution/open-waits.ts";
import { spokenEvent } from "../../model/execution/spoken-event.ts";
import { spokenStanding, type Standing } from "../../model/execution/spoken-standing.ts";
import type { ExecutionSummary } from "../../stores/execution/read/summary.ts";

/** A run in the live view. */
export interface RunRow {
  readonly id: string;
  readonly function: string;
  readonly status: ExecutionStatus | "unserved";
  /** Its activity, wait or outcome in a few words. */
  readonly doing: string;
  readonly startedAt: number;
  /** Null until it has ended. */
  readonly endedAt: number | null;
}

/** Details of a run beyond its summary. */
export interface RunDetails {
  /** Its newest event of the kinds below, if it is open and has one. */
  readonly newest: LoggedEvent<unknown> | undefined;
  /** Its open waits. */
  readonly waits: readonly OpenWait[];
  /** The last value of `ctx.setProgress`, or null. */
  readonly progress: unknown;
  /** Its result, once it has ended. */
  readonly result: ExecutionResult | undefined;
}

/** The time and time zone of the reader. */
export interface Moment {
  readonly now: number;
  readonly timeZone: string;
}

/** The kinds of events that show the progress of a run. */
export const tellingKinds: readonly ExecutionEvent["kind"][] = [
  "stepFinished",
  "stepAttemptFailed",
  "transactionFinished",
  "childRequested",
  "delayRequested",
  "receiveRequested",
  "attemptFailed",
  "ownerDied",
];

export function rowOf(
  summary: ExecutionSummary,
  details: RunDetails,
  moment: Moment,
  isUnserved = false,
): RunRow {
  const { now } = moment;
  const status = isUnserved ? "unserved" : statusOf(summary.state, now);
  const { id, function: name, createdAt, scheduledAt, state } = summary;
  const { pending } = state;
  return {
    id,
    function: name,
    status,
    doing: doingOf({ ...summary, status }, details, moment),
    startedAt: Math.max(createdAt, scheduledAt),
    endedAt: pending.kind === "finished" ? pending.finishedAt : null,
  };
}

/** Uses the words of `holdfast show` without durations and outcome, which have columns of their own. */
function doingOf(summary: Omit<Standing, "waits">, details: RunDetails, moment: Moment): string {
  const { interruption, status } = summary;
  const { newest, progress, waits } = details;
  const standing = spokenStanding({ ...summary, waits }, { ...moment, withoutDurations: true });
  const last =
    newest === undefined ? standing : `${standing}, last: ${spokenEvent(newest.event, newest.at)}`;
  switch (status) {
    case "completed":
    case "failed":
    case "cancelled":
    case "timedOut":
      return endOf(details.result);
    case "parked":
      return interruption?.kind === "parked" ? `${standing}: ${interruption.reason}` : standing;
    case "running":
      return progressOf(progress) ?? last;
    case "pending":
      return last;
    default:
      return standing;
  }
}

function endOf(result: ExecutionResult | undefined): string {
  switch (result?.kind) {
    case "failed":
      return `${result.error.name}: ${result.error.message}`;
    case "cancelled":
      return result.reason ?? "";
    case "timedOut":
      return "its deadline has passed";
    default:
      return "";
  }
}

function progressOf(progress: unknown): string | undefined {
  if (progress === null || progress === undefined) return undefined;
  if (typeof progress === "string") return progress;
  try {
    return JSON.stringify(progress);
  } catch {
    return undefined; // For example a bigint.
  }
}
