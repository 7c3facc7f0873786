import type { Encoded } from "../../../model/values/encoded.ts";
import type { ExecutionEvent } from "../../../model/execution/event.ts";
import { eventsInvalid } from "../../../model/execution/errors.ts";
import { parseExecutionId, type ExecutionId } from "../../../model/ids/execution-id.ts";
import { decideCancellation } from "../../../model/execution/decisions.ts";
import { isHeld } from "../../../model/execution/pending.ts";
import type { ExecutionState, Lifecycle } from "../../../model/execution/state.ts";
import { checkedText, givenFlag } from "../../../model/shape.ts";
import type { WaitOptions } from "../../../sql/database.ts";
import {
  announce,
  run,
  storeOperation,
  type StoreOperation,
  type Tx,
} from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { onlyWait, optionsAndWait, type Call } from "../../method.ts";
import { checkedFence, type Fence } from "../checks.ts";
import { judgedAt, type ExecutionContext, type Finished } from "../context.ts";
import { assertHeld } from "../log/record-check.ts";
import { appendTo } from "../log/append-to.ts";
import { isPresent, lockedRecord } from "../state-row.ts";
import { runInterrupted } from "../topics.ts";
import { hasBegun } from "./cancelling.ts";

interface OfExecution {
  readonly id: ExecutionId;
  readonly at: number;
}

const keyOf = (input: OfExecution): string => input.id;

/** Builds an input for one execution at the current time. */
export function ofExecution(
  { clock }: ExecutionContext,
  id: string,
  wait?: WaitOptions,
): Call<OfExecution> {
  const input = { id: parseExecutionId(id), at: clock.now() };
  return { input, wait: onlyWait(wait) };
}

interface Changed {
  /** The version of the next event. */
  readonly nextVersion: number;
  /** False if nothing had to change and nothing was written: the call may be repeated. */
  readonly isChanged: boolean;
}

/** True if the execution already has the target lifecycle. */
function isSoAlready({ pending, lifecycle }: ExecutionState, target: Lifecycle): boolean {
  return pending.kind !== "finished" && lifecycle === target;
}

function changed({ version }: ExecutionState): Changed {
  return { nextVersion: version + 1, isChanged: true };
}

function unchanged({ version }: ExecutionState): Changed {
  return { nextVersion: version + 1, isChanged: false };
}

/**
 * Prevents an execution from being locked until it is unpaused. The worker of a workflow may record
 * the calls that it has started, then unlocks it. A running activity cannot be stopped halfway. May
 * be repeated.
 * @throws HoldfastError `EXECUTION_NOT_FOUND`, `EXECUTION_FINISHED`,
 *   `EXECUTION_RUNNING`, `EXECUTION_CANCELLING` or `EXECUTION_PARKED`.
 */
export const pauseExecution = storeOperation("pauseExecution", {
  key: keyOf,
  *one(context: ExecutionContext, { id, at: askedAt }: OfExecution): Tx<Changed> {
    const record = yield* lockedRecord(id);
    const at = judgedAt(context, askedAt);
    if (isSoAlready(record.state, "paused")) return unchanged(record.state);
    return changed(yield* appendTo(context, record, at, [{ kind: "paused" }]));
  },
});

/** Resumes a paused execution. May be repeated. @throws HoldfastError `EXECUTION_NOT_FOUND`, `EXECUTION_FINISHED`, `EXECUTION_CANCELLING` or `EXECUTION_PARKED`. */
export const unpauseExecution: StoreOperation<ExecutionContext, OfExecution, Changed> =
  storeOperation("unpauseExecution", {
    key: keyOf,
    one: (context: ExecutionContext, input) => activate(context, input, { kind: "unpaused" }),
  });

/** Resumes a parked execution. May be repeated. @throws HoldfastError `EXECUTION_NOT_FOUND`, `EXECUTION_FINISHED`, `EXECUTION_CANCELLING` or `EXECUTION_PAUSED`. */
export const unparkExecution: StoreOperation<ExecutionContext, OfExecution, Changed> =
  storeOperation("unparkExecution", {
    key: keyOf,
    one: (context: ExecutionContext, input) => activate(context, input, { kind: "unparked" }),
  });

function* activate(
  context: ExecutionContext,
  { id, at: askedAt }: OfExecution,
  event: ExecutionEvent,
): Tx<Changed> {
  const record = yield* lockedRecord(id);
  const at = judgedAt(context, askedAt);
  if (isSoAlready(record.state, "active")) return unchanged(record.state);
  return changed(yield* appendTo(context, record, at, [event]));
}

export interface CancelOptions extends WaitOptions {
  /** A text for people, kept in the log and in the result. */
  readonly reason?: string;
  /** Ends the execution and all its descendants without running their code. */
  readonly force?: boolean;
}

export interface RequestCancellation extends OfExecution {
  readonly reason: string | null;
  /** The result for an execution that can be ended at once. */
  readonly cancelled: Finished;
}

export function givenCancellation(
  { clock, values, endings }: ExecutionContext,
  id: string,
  options?: CancelOptions,
): Call<RequestCancellation> {
  const { options: given, wait } = optionsAndWait(options, ["reason", "force"]);
  givenFlag("force", given.force);
  const reason = given.reason === undefined ? null : checkedText("A reason", given.reason, 4_096);
  const input = {
    id: parseExecutionId(id),
    at: clock.now(),
    reason,
    cancelled: reason === null ? endings.cancelled : values.finished({ kind: "cancelled", reason }),
  };
  return { input, wait };
}

export type CancellationOutcome =
  /** The execution has ended. */
  | "cancelled"
  /** The execution is marked and due: its code ends it. */
  | "requested"
  | "alreadyCancelling"
  | "alreadyFinished";

/** Requests the end of an execution. May be repeated. @throws HoldfastError `EXECUTION_NOT_FOUND` */
export const requestCancellation: StoreOperation<
  ExecutionContext,
  RequestCancellation,
  CancellationOutcome
> = storeOperation("requestCancellation", {
  key: keyOf,
  one: cancelOrMark,
});

/** The same as a part of other operations. */
export function* cancelOrMark(
  context: Pick<ExecutionContext, "clock" | "database">,
  { id, at: askedAt, reason, cancelled }: RequestCancellation,
): Tx<CancellationOutcome> {
  const record = yield* lockedRecord(id);
  const at = judgedAt(context, askedAt);
  const decision = decideCancellation(record.state, {
    at,
    hasBegun: yield* hasBegun(record),
  });
  if (decision === "alreadyFinished" || decision === "alreadyCancelling") return decision;
  const requested: ExecutionEvent = {
    kind: "cancellationRequested",
    reason,
    cause: "request",
  };
  if (decision === "mark") {
    yield* appendTo(context, record, at, [requested]);
    return "requested";
  }
  yield* appendTo(context, record, at, [requested, cancelled]);
  return "cancelled";
}

/**
 * Ends an activity or an external execution as cancelled, even while it runs: the worker's result
 * is then refused. For a workflow use `requestCancellation`.
 * @throws HoldfastError `EXECUTION_NOT_FOUND`, or `EVENTS_INVALID` for a workflow.
 */
export const cancelActivity = storeOperation("cancelActivity", {
  key: keyOf,
  *one(
    context: ExecutionContext,
    { id, at: askedAt }: OfExecution,
  ): Tx<"cancelled" | "alreadyFinished"> {
    const record = yield* lockedRecord(id);
    const at = judgedAt(context, askedAt);
    const { role, pending } = record.state;
    if (pending.kind === "finished") return "alreadyFinished";
    if (role === "workflow")
      throw eventsInvalid(id, "role", "it is a workflow. Request its cancellation.");
    yield* appendTo(context, record, at, [context.endings.cancelled]);
    if (isHeld(pending, at)) yield* announce(runInterrupted, id);
    return "cancelled";
  },
});

export interface ProgressOptions extends WaitOptions {
  /** Set it only as the run that last locked the execution. */
  readonly fence?: Fence;
}

export interface SetProgress {
  readonly id: ExecutionId;
  /** A value for people; not part of the log. */
  readonly progress: Encoded | null;
  readonly fence?: Fence;
}

export function givenProgress(
  { values }: ExecutionContext,
  id: string,
  progress: unknown,
  options?: ProgressOptions,
): Call<SetProgress> {
  const { options: given, wait } = optionsAndWait(options, ["fence"]);
  const { fence } = given;
  const input = {
    id: parseExecutionId(id),
    progress: progress === null ? null : values.value(progress),
    ...(fence !== undefined && { fence: checkedFence("fence", fence) }),
  };
  return { input, wait };
}

/** Sets the progress of an execution. @throws HoldfastError `EXECUTION_NOT_FOUND`, `LOCK_LOST` */
export const setProgress = storeOperation("setProgress", {
  key: (input) => input.id,
  *one(_: ExecutionContext, { id, progress, fence }: SetProgress): Tx<void> {
    if (fence !== undefined) assertHeld(yield* lockedRecord(id), fence);
    const written = yield* run(sql`
      UPDATE holdfast_execution SET progress = ${progress} WHERE id = ${id} AND ${isPresent(id)}`);
    if (written === 0) yield* lockedRecord(id);
  },
});
