import { HoldfastError } from "../errors.ts";
import type { ExecutionId } from "../ids/execution-id.ts";
import type { Lifecycle } from "./state.ts";

/** What callers of the execution log are told, in one place so that it is said one way. */

/** `missing` is "parent" when `id` is that of an execution's parent. */
export function executionNotFound(
  id: ExecutionId,
  missing: "execution" | "parent" = "execution",
): HoldfastError {
  const what = missing === "parent" ? "parent execution" : "execution";
  return new HoldfastError(
    "EXECUTION_NOT_FOUND",
    `There is no ${what} ${id}. Check the id; a finished one may have been removed by retention.`,
    { id, missing },
  );
}

/** The same where a tombstone tells more. */
export function executionGone(id: ExecutionId, erasedAt: number): HoldfastError {
  return new HoldfastError(
    "EXECUTION_NOT_FOUND",
    `Run ${id} was erased at ${new Date(erasedAt).toISOString()}: nothing is left of it but its id, which is kept so that it is not run again by mistake.`,
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
    `Execution ${id} has no event ${version}: its last one is ${lastVersion}.`,
    { id, missing: "event", version, lastVersion },
  );
}

export function eventPruned(id: ExecutionId, version: number, prunedBefore: number): HoldfastError {
  return new HoldfastError(
    "EXECUTION_NOT_FOUND",
    `Event ${version} of execution ${id} is gone: its history before version ${prunedBefore} was pruned.`,
    { id, missing: "event", version, prunedBefore },
  );
}

/** The same when a child is to be created, or has ended: `details.missing` tells the two apart. */
export function parentNotFound(parent: ExecutionId, child: ExecutionId): HoldfastError {
  return new HoldfastError(
    "EXECUTION_NOT_FOUND",
    `There is no execution ${parent}, which ${child} is a child of; nothing was written. ` +
      "Check the id; a finished parent may have been removed by retention.",
    { id: parent, child, missing: "parent" },
  );
}

export function executionBeingRemoved(id: ExecutionId): HoldfastError {
  return new HoldfastError(
    "EXECUTION_BEING_REMOVED",
    `The execution that had the id ${id} is being removed by retention, which has not come to its end. ` +
      "Try again once it has, or use another id.",
    { id },
  );
}

/** Why an id cannot be used whose run is as good as gone. */
export function idTakenByRemoved(id: ExecutionId, erasedAt: number | null): HoldfastError {
  return erasedAt === null ? executionBeingRemoved(id) : executionErased(id, erasedAt);
}

function executionErased(id: ExecutionId, erasedAt: number): HoldfastError {
  return new HoldfastError(
    "EXECUTION_ERASED",
    `The run ${id} was erased; its id is kept so that it is not run again by mistake. ` +
      "Use another id. It is free again when retention has removed what is left of the run.",
    { id, erasedAt },
  );
}

export function executionUnfinished(id: ExecutionId): HoldfastError {
  return new HoldfastError(
    "EXECUTION_UNFINISHED",
    `Run ${id}, or something below it, has not ended, so it cannot be erased; nothing was removed. ` +
      "Cancel it, with { force: true } if its code is not to run any more, and erase it then.",
    { id },
  );
}

export function executionOfProcess(id: ExecutionId): HoldfastError {
  return new HoldfastError(
    "PROCESS_SPAWNED",
    `Run ${id}, or something below it, runs for a process whose output it holds; nothing was removed. ` +
      "Prune that process, and erase the run then.",
    { id },
  );
}

export function executionExists(id: ExecutionId, difference: "function" | "input"): HoldfastError {
  return new HoldfastError(
    "EXECUTION_EXISTS",
    `Execution ${id} exists already with another ${difference}; it was left as it is. ` +
      "Use another id, or the same function and input to get the one that exists.",
    { id, difference },
  );
}

/** The same for a copy: what stands under its id was not made by this call before. */
export function copyIdTaken(id: ExecutionId): HoldfastError {
  return new HoldfastError(
    "EXECUTION_EXISTS",
    `The id ${id} is taken by a run that is no such copy; it was left as it is, and nothing was copied. ` +
      "Choose another id for the copy.",
    { id, difference: "origin" },
  );
}

export function executionFinished(id: ExecutionId, version: number): HoldfastError {
  return new HoldfastError(
    "EXECUTION_FINISHED",
    `Execution ${id} has finished (version ${version}), so nothing can be added to it. Read its result, or fork it.`,
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
    `The next version of execution ${id} is ${expected}, not ${requested}, so this call wrote nothing. ` +
      (requested < expected
        ? "Other events stand there. Read the log from the version you know and decide again."
        : "The log does not reach so far. Read where it stands."),
    { id, expected, requested },
  );
}

/** What is wrong with events that can never be appended. */
export type EventsInvalidReason =
  /** There are none. */
  | "none"
  /** More events or children than one append takes. */
  | "tooMany"
  /** Of no kind that there is, or of one that has a call of its own. */
  | "kind"
  /** A field is missing, unknown, malformed or too large; `details.path` says which. */
  | "field"
  /** "finished" is not the last, or is missing where a parent is to be told. */
  | "end"
  /** What is to be started beside it is not among `children`, or is another function there. */
  | "draft"
  /** A child, delay or parent is another execution's. */
  | "owner"
  /** A child that it did not create exists. */
  | "childExists"
  /** An execution of its role has no such events. */
  | "role"
  /** A response is spoken of that has not come. */
  | "response";

export function eventsInvalid(
  id: ExecutionId,
  reason: EventsInvalidReason,
  why: string,
  details: Readonly<Record<string, unknown>> = {},
): HoldfastError {
  return new HoldfastError(
    "EVENTS_INVALID",
    `These events cannot be appended to execution ${id}: ${why}`,
    { id, reason, ...details },
  );
}

export function lockLost(id: ExecutionId): HoldfastError {
  return new HoldfastError(
    "LOCK_LOST",
    `Execution ${id} is no longer held by this executor and run; nothing was written. ` +
      "Stop working on it: another worker may have it.",
    { id },
  );
}

const lifecycleRefusals = {
  paused: ["EXECUTION_PAUSED", "is paused. Unpause it to let it go on."],
  cancelling: [
    "EXECUTION_CANCELLING",
    "is being cancelled. Only who has locked it can add how it cleans up, and its end.",
  ],
  parked: [
    "EXECUTION_PARKED",
    "is parked. Deal with the reason it was parked for, then unpark it.",
  ],
} as const;

export function refusedByLifecycle(
  id: ExecutionId,
  lifecycle: Exclude<Lifecycle, "active">,
): HoldfastError {
  const [code, why] = lifecycleRefusals[lifecycle];
  return new HoldfastError(code, `Execution ${id} ${why} Nothing was written.`, {
    id,
    lifecycle,
  });
}
