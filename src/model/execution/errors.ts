import { HoldfastError } from "../errors.ts";
import type { ExecutionId } from "../ids/execution-id.ts";
import type { Lifecycle } from "./state.ts";

/** The errors of the execution log, collected here so that each has one wording. */

/** `missing` is "parent" when `id` names an execution's parent. */
export function executionNotFound(
  id: ExecutionId,
  missing: "execution" | "parent" = "execution",
): HoldfastError {
  return new HoldfastError(
    "EXECUTION_NOT_FOUND",
    `${missing === "parent" ? "The parent run" : "Run"} ${id} does not exist. Check the id; retention may have removed it after it finished.`,
    { id, missing },
  );
}

/** The error for an erased run, known from its tombstone. */
export function executionGone(id: ExecutionId, erasedAt: number): HoldfastError {
  return new HoldfastError(
    "EXECUTION_NOT_FOUND",
    `Run ${id} was erased at ${new Date(erasedAt).toISOString()}: only its id is kept, so that it is not run again by mistake.`,
    { id, missing: "execution", erasedAt },
  );
}

export function eventNotFound(
  id: ExecutionId,
  version: number,
  lastVersion: number,
): HoldfastError {
  return new HoldfastError(
    "EXECUTION_NOT_FOUND",
    `Run ${id} has no event ${version}: its last one is ${lastVersion}.`,
    { id, missing: "event", version, lastVersion },
  );
}

export function eventPruned(id: ExecutionId, version: number, prunedBefore: number): HoldfastError {
  return new HoldfastError(
    "EXECUTION_NOT_FOUND",
    `Event ${version} of run ${id} is gone: its history before version ${prunedBefore} was pruned.`,
    { id, missing: "event", version, prunedBefore },
  );
}

/**
 * The error for a missing parent when a child is created or has ended. `details.missing` distinguishes it
 * from a missing execution.
 */
export function parentNotFound(parent: ExecutionId, child: ExecutionId): HoldfastError {
  return new HoldfastError(
    "EXECUTION_NOT_FOUND",
    `Run ${parent}, the parent of ${child}, does not exist; nothing was written. ` +
      "Check the id; retention may have removed the parent after it finished.",
    { id: parent, child, missing: "parent" },
  );
}

/** The error for a run's transaction that wrote to the log that records it. */
export function executionChangedInside(id: ExecutionId, transaction: string): HoldfastError {
  return new HoldfastError(
    "EXECUTION_CHANGED_INSIDE",
    `Transaction "${transaction}" of run ${id} ended, cancelled or paused that run, or appended to its log; the transaction was rolled back. ` +
      "Do that in a step, or end the run by returning or throwing. Inside the transaction, answer the run: end a child of it, or signal it.",
    { id, transaction },
  );
}

export function executionBeingRemoved(id: ExecutionId): HoldfastError {
  return new HoldfastError(
    "EXECUTION_BEING_REMOVED",
    `The previous run with the id ${id} is still being removed by retention. ` +
      "Retry when it is removed, or use another id.",
    { id },
  );
}

/** The error for an id whose run was erased or is being removed. */
export function idTakenByRemoved(id: ExecutionId, erasedAt: number | null): HoldfastError {
  return erasedAt === null ? executionBeingRemoved(id) : executionErased(id, erasedAt);
}

function executionErased(id: ExecutionId, erasedAt: number): HoldfastError {
  return new HoldfastError(
    "EXECUTION_ERASED",
    `Run ${id} was erased; its id is kept so that it is not run again by mistake. ` +
      "Use another id. This id is free again when retention has removed the rest of the run.",
    { id, erasedAt },
  );
}

export function executionUnfinished(id: ExecutionId): HoldfastError {
  return new HoldfastError(
    "EXECUTION_UNFINISHED",
    `Run ${id} or one of its children has not ended, so it cannot be erased; nothing was removed. ` +
      "Cancel it, with { force: true } if its code must not run any more, then erase it.",
    { id },
  );
}

export function executionOfProcess(id: ExecutionId): HoldfastError {
  return new HoldfastError(
    "PROCESS_SPAWNED",
    `Run ${id} or one of its children runs for a process and holds its output; nothing was removed. ` +
      "Prune that process, then erase the run.",
    { id },
  );
}

export function executionExists(id: ExecutionId, difference: "function" | "input"): HoldfastError {
  return new HoldfastError(
    "EXECUTION_EXISTS",
    `Run ${id} already exists with another ${difference}; it was left unchanged. ` +
      "Use another id, or the same function and input to get the existing one.",
    { id, difference },
  );
}

/** The error for a copy whose id is taken by a run that this call did not make. */
export function copyIdTaken(id: ExecutionId): HoldfastError {
  return new HoldfastError(
    "EXECUTION_EXISTS",
    `The id ${id} is taken by a run that is not this copy; it was left unchanged, and nothing was copied. ` +
      "Choose another id for the copy.",
    { id, difference: "origin" },
  );
}

export function executionFinished(id: ExecutionId, version: number): HoldfastError {
  return new HoldfastError(
    "EXECUTION_FINISHED",
    `Run ${id} has finished (version ${version}), so nothing can be appended to it. Read its result, or fork it.`,
    { id, version },
  );
}

export function versionConflict(
  id: ExecutionId,
  expected: number,
  requested: number,
): HoldfastError {
  return new HoldfastError(
    "VERSION_CONFLICT",
    `The next version of run ${id} is ${expected}, not ${requested}, so this call wrote nothing. ` +
      (requested < expected
        ? "Other events were appended there. Read the log from the version you know and decide again."
        : "The log is shorter than that. Read its current version."),
    { id, expected, requested },
  );
}

/** The reason why events can never be appended. */
export type EventsInvalidReason =
  /** The list is empty. */
  | "none"
  /** The list has more events or children than one append takes. */
  | "tooMany"
  /** The kind is unknown, or has its own method. */
  | "kind"
  /** A field is missing, unknown, malformed or too large; `details.path` names it. */
  | "field"
  /** "finished" is not the last event, or is missing where a parent must be answered. */
  | "end"
  /** A child or a scheduled execution is missing from `children`, or has another function there. */
  | "draft"
  /** A child, delay or parent belongs to another execution. */
  | "owner"
  /** The child exists and was not created by this execution. */
  | "childExists"
  /** An execution of this role cannot have such an event. */
  | "role"
  /** The event refers to a response that has not come. */
  | "response";

export function eventsInvalid(
  id: ExecutionId,
  reason: EventsInvalidReason,
  why: string,
  details: Readonly<Record<string, unknown>> = {},
): HoldfastError {
  return new HoldfastError(
    "EVENTS_INVALID",
    `These events cannot be appended to run ${id}: ${why}`,
    { id, reason, ...details },
  );
}

/** The error for a timeout of a receive whose message has come. */
export function messageUnread(id: ExecutionId, signal: string, seq: number): HoldfastError {
  return new HoldfastError(
    "MESSAGE_UNREAD",
    `Message ${seq} of execution ${id}, a signal "${signal}", came before the timeout of its receive was recorded; nothing was written. ` +
      "Deliver the responses after the last one seen, then append again without that timeout.",
    { id, signal, seq },
  );
}

export function lockLost(id: ExecutionId): HoldfastError {
  return new HoldfastError(
    "LOCK_LOST",
    `Run ${id} is no longer locked by this caller; nothing was written. ` +
      "Stop working on it: another worker may have it.",
    { id },
  );
}

const lifecycleRefusals = {
  paused: ["EXECUTION_PAUSED", "is paused. Resume it to let it continue."],
  cancelling: [
    "EXECUTION_CANCELLING",
    "is being cancelled. Only the holder of its lock can append its cleanup and its end.",
  ],
  parked: ["EXECUTION_PARKED", "is parked. Fix the cause, then unpark it."],
} as const;

export function refusedByLifecycle(
  id: ExecutionId,
  lifecycle: Exclude<Lifecycle, "active">,
): HoldfastError {
  const [code, why] = lifecycleRefusals[lifecycle];
  return new HoldfastError(code, `Run ${id} ${why} Nothing was written.`, {
    id,
    lifecycle,
  });
}
