import type { ExecutionEvent } from "../../../model/execution-event.ts";
import { eventsInvalid } from "../../../model/execution-errors.ts";
import type { ExecutionId } from "../../../model/execution-id.ts";
import { decideCancellation } from "../../../model/execution-decisions.ts";
import type {
  ExecutionState,
  Lifecycle,
} from "../../../model/execution-state.ts";
import { isHeld } from "../../../model/execution-transition.ts";
import { run, plainOperation } from "../../../sql/operation.ts";
import type { Operation } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { appendTo } from "../log/append-to.ts";
import type { Finished } from "../context.ts";
import { hasChildren } from "./cancelling.ts";
import { isPresent } from "../presence.ts";
import { lockedRecord } from "../state-row.ts";

interface OfExecution {
  readonly id: ExecutionId;
  readonly at: number;
}

const keyOf = (input: OfExecution): string => input.id;

export interface Changed {
  /** The version the next event gets. */
  readonly nextVersion: number;
  /** False when it was so already, and nothing was written: the call may be repeated. */
  readonly isChanged: boolean;
}

/** True when there is nothing left to do to bring a lifecycle about. */
function isSoAlready(
  { pending, lifecycle }: ExecutionState,
  wanted: Lifecycle,
): boolean {
  return pending.kind !== "finished" && lifecycle === wanted;
}

function hasChanged({ version }: ExecutionState): Changed {
  return { nextVersion: version + 1, isChanged: true };
}

function hasNotChanged({ version }: ExecutionState): Changed {
  return { nextVersion: version + 1, isChanged: false };
}

/**
 * Stops an execution from being locked until it is unpaused. A workflow that
 * is being run is taken from its worker, whose next append is refused; a
 * running activity cannot be stopped halfway. May be repeated.
 *
 * @throws HoldfastError `EXECUTION_NOT_FOUND`, `EXECUTION_FINISHED`,
 *   `EXECUTION_RUNNING`, `EXECUTION_CANCELLING` or `EXECUTION_PARKED`.
 */
export const pauseExecution: Operation<OfExecution, Changed> = plainOperation(
  "pauseExecution",
  {
    key: keyOf,
    *one({ id, at }) {
      const record = yield* lockedRecord(id);
      const { role, pending, lifecycle } = record.state;
      if (isSoAlready(record.state, "paused"))
        return hasNotChanged(record.state);
      const isTaken =
        role === "workflow" && lifecycle === "active" && isHeld(pending, at);
      const events: ExecutionEvent[] = isTaken
        ? [
            { kind: "unlocked", dueAt: at, reason: "paused" },
            { kind: "paused" },
          ]
        : [{ kind: "paused" }];
      return hasChanged(yield* appendTo(record, at, events));
    },
  },
);

/** Lets a paused execution go on. May be repeated. @throws HoldfastError `EXECUTION_NOT_FOUND`, `EXECUTION_FINISHED`, `EXECUTION_CANCELLING` or `EXECUTION_PARKED`. */
export const unpauseExecution: Operation<OfExecution, Changed> = plainOperation(
  "unpauseExecution",
  {
    key: keyOf,
    *one({ id, at }) {
      const record = yield* lockedRecord(id);
      if (isSoAlready(record.state, "active"))
        return hasNotChanged(record.state);
      return hasChanged(yield* appendTo(record, at, [{ kind: "unpaused" }]));
    },
  },
);

/** Lets a parked execution go on. May be repeated. @throws HoldfastError `EXECUTION_NOT_FOUND`, `EXECUTION_FINISHED`, `EXECUTION_CANCELLING` or `EXECUTION_PAUSED`. */
export const unparkExecution: Operation<OfExecution, Changed> = plainOperation(
  "unparkExecution",
  {
    key: keyOf,
    *one({ id, at }) {
      const record = yield* lockedRecord(id);
      if (isSoAlready(record.state, "active"))
        return hasNotChanged(record.state);
      return hasChanged(yield* appendTo(record, at, [{ kind: "unparked" }]));
    },
  },
);

export interface RequestCancellation extends OfExecution {
  readonly reason: string | null;
  /** The result it gets if it can be ended at once. */
  readonly cancelled: Finished;
}

export type CancellationOutcome =
  /** It has ended. */
  | "cancelled"
  /** It is marked; whoever runs it, or drives its cancellation, ends it. */
  | "requested"
  | "alreadyCancelling"
  | "alreadyFinished";

/** Asks an execution to end. May be repeated. @throws HoldfastError `EXECUTION_NOT_FOUND` */
export const requestCancellation: Operation<
  RequestCancellation,
  CancellationOutcome
> = plainOperation("requestCancellation", {
  key: (input: RequestCancellation) => input.id,
  *one({ id, at, reason, cancelled }) {
    const record = yield* lockedRecord(id);
    const decision = decideCancellation(record.state, {
      at,
      hasChildren: yield* hasChildren(record.key),
    });
    if (decision === "alreadyFinished" || decision === "alreadyCancelling")
      return decision;
    const requested: ExecutionEvent = {
      kind: "cancellationRequested",
      reason,
      cause: "request",
    };
    if (decision === "mark") {
      yield* appendTo(record, at, [requested]);
      return "requested";
    }
    yield* appendTo(record, at, [requested, cancelled]);
    return "cancelled";
  },
});

export interface CancelActivity extends OfExecution {
  readonly cancelled: Finished;
}

/**
 * Ends an activity or an external execution as cancelled, also while it runs:
 * its worker's result is then refused. For a workflow use `requestCancellation`.
 *
 * @throws HoldfastError `EXECUTION_NOT_FOUND`, or `EVENTS_INVALID` for a workflow.
 */
export const cancelActivity: Operation<
  CancelActivity,
  "cancelled" | "alreadyFinished"
> = plainOperation("cancelActivity", {
  key: (input: CancelActivity) => input.id,
  *one({ id, at, cancelled }) {
    const record = yield* lockedRecord(id);
    const { role, pending } = record.state;
    if (pending.kind === "finished") return "alreadyFinished";
    if (role === "workflow")
      throw eventsInvalid(
        id,
        "role",
        "it is a workflow. Request its cancellation.",
      );
    yield* appendTo(record, at, [cancelled]);
    return "cancelled";
  },
});

export interface SetProgress extends Omit<OfExecution, "at"> {
  /** A value for people to look at; not part of the log. */
  readonly progress: string | null;
}

/** Shows how far an execution has come. @throws HoldfastError `EXECUTION_NOT_FOUND` */
export const setProgress: Operation<SetProgress, void> = plainOperation(
  "setProgress",
  {
    key: (input: SetProgress) => input.id,
    *one({ id, progress }) {
      const changed = yield* run(sql`
        UPDATE holdfast_execution SET progress = ${progress} WHERE id = ${id} AND ${isPresent(id)}`);
      if (changed === 0) yield* lockedRecord(id);
    },
  },
);
