import { unreachable } from "../errors.ts";
import type { ResultKind } from "./event.ts";
import { isSleeping, type ExecutionState } from "./state.ts";

/**
 * The one-word status of an execution, for readers. Each execution has exactly one. A paused,
 * cancelling or parked lifecycle takes precedence over a wait.
 */
export type ExecutionStatus =
  /** Due: a worker may take it. */
  | "pending"
  /** Due later. */
  | "scheduled"
  /**
   * A worker has it: it is locked, or it resumes in the memory of the worker that kept it while it
   * waited.
   */
  | "running"
  /** It waits for something. */
  | "blocked"
  | "paused"
  | "cancelling"
  | "parked"
  | ResultKind;

/** All statuses as data, for filters and counts. */
const isStatus: Readonly<Record<ExecutionStatus, true>> = {
  pending: true,
  scheduled: true,
  running: true,
  blocked: true,
  paused: true,
  cancelling: true,
  parked: true,
  completed: true,
  failed: true,
  cancelled: true,
  timedOut: true,
};

export function isExecutionStatus(text: string): text is ExecutionStatus {
  return Object.hasOwn(isStatus, text);
}

export const executionStatuses: readonly ExecutionStatus[] = Object.keys(
  isStatus,
) as ExecutionStatus[];

export function statusOf(
  { pending, lifecycle }: Pick<ExecutionState, "pending" | "lifecycle">,
  now: number,
): ExecutionStatus {
  if (pending.kind === "finished") return pending.resultKind;
  if (lifecycle !== "active") return lifecycle;
  switch (pending.kind) {
    case "pending":
      if (isSleeping(pending) && pending.wakeAt > now) return "blocked";
      // Its answer or its time has come, and the worker that keeps it resumes it.
      if (pending.leaseUntil !== null && pending.leaseUntil > now) return "running";
      return pending.dueAt > now ? "scheduled" : "pending";
    case "locked":
      return "running";
    case "blocked":
      return "blocked";
    default:
      return unreachable(pending);
  }
}
