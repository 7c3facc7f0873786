import { unreachable } from "../errors.ts";
import type { ResultKind } from "./event.ts";
import { isSleeping, type ExecutionState } from "./state.ts";

/**
 * The one word that tells a reader where an execution stands. Each execution
 * has exactly one: what keeps it from going on comes before what it waits for.
 */
export type ExecutionStatus =
  /** Due: a worker may take it. */
  | "pending"
  /** Due later. */
  | "scheduled"
  /** A worker has it: it is locked, or goes on in the memory of the one that kept it while it waited. */
  | "running"
  /** It waits for something. */
  | "blocked"
  | "paused"
  | "cancelling"
  | "parked"
  | ResultKind;

/** All of them, as data: what a filter accepts and a count is made of. */
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
      // Its answer or its time has come, and the worker that keeps it goes on with it.
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
