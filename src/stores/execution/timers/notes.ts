import type { ExecutionEvent } from "../../../model/execution/event.ts";
import type { ExecutionResult } from "../../../model/execution/result.ts";
import type { ExecutionId } from "../../../model/ids/execution-id.ts";
import type { FunctionName } from "../../../model/ids/function-name.ts";
import { ownerDied } from "../context.ts";
import type { Effects } from "../log/append-to.ts";
import type { ExecutionRecord } from "../state-row.ts";

/**
 * Records of a timer, or of the worker that takes over from a dead process. None of the
 * executions' own code runs that could report them, so the process that recorded them does.
 */

interface OfExecution {
  readonly id: ExecutionId;
  readonly function: FunctionName;
}

/** An execution that was parked. */
export interface Parked extends OfExecution {
  readonly code: string;
  readonly reason: string;
}

/** An execution that is being cancelled because too many processes died of it. */
export interface Convicted extends OfExecution {
  readonly reason: string;
}

/** An execution that was ended. */
export interface EndedWithoutCode extends OfExecution {
  readonly result: ExecutionResult;
  /** The messages that it has not received; missing when there were none. */
  readonly unread?: number;
}

/** An attempt of an activity that was lost with its worker, and is made again. */
export interface AttemptLost extends OfExecution {
  readonly dueAt: number;
}

export type Note = Parked | Convicted | EndedWithoutCode | AttemptLost;

/** Notes by what they tell, as reports list them. */
export interface Notes {
  readonly parked: Parked[];
  readonly cancelled: Convicted[];
  readonly ended: EndedWithoutCode[];
  readonly attemptsLost: AttemptLost[];
}

export function noNotes(): Notes {
  return { parked: [], cancelled: [], ended: [], attemptsLost: [] };
}

export function addNote(notes: Notes, note: Note): void {
  const { parked, cancelled, ended, attemptsLost } = notes;
  if ("code" in note) parked.push(note);
  else if ("result" in note) ended.push(note);
  else if ("dueAt" in note) attemptsLost.push(note);
  else cancelled.push(note);
}

/**
 * The note of appended events; undefined when there is nothing to report. A question without an
 * answer in time has not failed: the run that asked is told.
 */
export function noteOf(
  { id, function: name, state: { role } }: ExecutionRecord,
  events: readonly ExecutionEvent[],
  { unread }: Effects,
): Note | undefined {
  if (role === "external") return undefined;
  const of = { id, function: name };
  const last = events.at(-1);
  switch (last?.kind) {
    case "parked":
      return { ...of, code: last.code, reason: last.reason };
    case "cancellationRequested":
      return last.reason === null ? undefined : { ...of, reason: last.reason };
    case "finished": {
      const { resultKind: kind } = last;
      const result = kind === "failed" ? { kind, error: ownerDied } : { kind };
      return { ...of, result: result as ExecutionResult, ...(unread !== undefined && { unread }) };
    }
    case "attemptTimedOut":
    case "ownerDied":
      // A workflow resumes behind its last event: none of its attempts was lost.
      return role === "activity" ? { ...of, dueAt: last.dueAt } : undefined;
    default:
      return undefined;
  }
}

/** The outcome for an execution, and the note to report. */
export interface Noted<Outcome extends string> {
  readonly outcome: Outcome;
  readonly note?: Note | undefined;
}
