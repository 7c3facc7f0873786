import { HoldfastError, unreachable } from "../errors.ts";
import type { Holder } from "./event.ts";
import { executionFinished, refusedByLifecycle } from "./errors.ts";
import type { ExecutionId } from "../ids/execution-id.ts";
import { isSameRun } from "./state.ts";
import type { ExecutionState } from "./state.ts";

export interface LockRequest {
  readonly at: number;
  readonly holder: Pick<Holder, "executor" | "run">;
  readonly leaseUntil: number;
  /** The version of the code that will run it, if it has one. */
  readonly codeVersion: string | null;
}

/**
 * True when code of this version may lock an execution. A version under which it was parked may
 * not. Another version may try an execution that was parked only for that.
 */
export function isCompatible(
  { lifecycle, incompatible }: Pick<ExecutionState, "lifecycle" | "incompatible">,
  codeVersion: string | null,
): boolean {
  if (codeVersion !== null && incompatible.includes(codeVersion)) return false;
  return lifecycle !== "parked" || (codeVersion !== null && incompatible.length > 0);
}

/**
 * Returns whether a lock is new or extends the caller's own, also for a wait that is kept in
 * memory. Throws when the lock may not be taken. An expired lock is never taken over directly. Its
 * expiry must be recorded first, so that the log shows what happened.
 *
 * @throws HoldfastError `LOCK_EXPIRY_INVALID`, `LOCK_NOT_DUE`, `LOCK_HELD`, `LOCK_BLOCKED`,
 * `LOCK_INCOMPATIBLE`, `EXECUTION_FINISHED`, `EXECUTION_PAUSED` or `EXECUTION_PARKED`.
 */
export function canAppendLock(
  id: ExecutionId,
  state: ExecutionState,
  request: LockRequest,
): "new" | "extension" {
  const { at, holder } = request;
  assertLeaseAhead(request);
  const { pending, lifecycle } = state;
  if (pending.kind === "finished") throw executionFinished(id, state.version);
  const isAllowed = isCompatible(state, request.codeVersion);
  if (lifecycle === "paused" || (lifecycle === "parked" && !isAllowed))
    throw refusedByLifecycle(id, lifecycle);
  if (!isAllowed)
    throw refusal(
      "LOCK_INCOMPATIBLE",
      `Run ${id} was already parked under this code version. Lock it with another version, or cancel it by force.`,
      { id },
    );
  switch (pending.kind) {
    case "pending":
      if (isSameRun(pending.lastLock, holder) && pending.dueAt > at) return "extension";
      if (pending.dueAt <= at) return "new";
      throw refusal("LOCK_NOT_DUE", `Run ${id} is due in ${pending.dueAt - at} ms. Lock it then.`, {
        id,
        dueAt: pending.dueAt,
      });
    case "locked":
      if (isSameRun(pending.holder, holder)) return "extension";
      throw refusal(
        "LOCK_HELD",
        `Run ${id} is locked by ${pending.holder.executor}. Wait until it is released or its expiry is recorded.`,
        { id, holder: pending.holder.executor, leaseUntil: pending.leaseUntil },
      );
    case "blocked":
      if (isSameRun(pending.lastLock, holder) && pending.leaseUntil !== null) return "extension";
      throw refusal(
        "LOCK_BLOCKED",
        `Run ${id} waits for ${pending.on.kind === "joinSet" ? `join set ${pending.on.joinSet}` : pending.on.kind}. It can be locked when the response has come.`,
        { id },
      );
    default:
      return unreachable(pending);
  }
}

/** @throws HoldfastError `LOCK_EXPIRY_INVALID` */
export function assertLeaseAhead({ at, leaseUntil }: Pick<LockRequest, "at" | "leaseUntil">): void {
  if (leaseUntil > at) return;
  throw refusal(
    "LOCK_EXPIRY_INVALID",
    `A lock must end after it starts (${leaseUntil} is not after ${at}). Pass a later end.`,
    { leaseUntil, at },
  );
}

function refusal(
  code: "LOCK_EXPIRY_INVALID" | "LOCK_NOT_DUE" | "LOCK_HELD" | "LOCK_BLOCKED" | "LOCK_INCOMPATIBLE",
  message: string,
  details: Readonly<Record<string, unknown>>,
): HoldfastError {
  return new HoldfastError(code, message, details);
}
