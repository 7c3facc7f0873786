import {
  decideDeadline,
  decideExpiredLock,
} from "../../../model/execution-decisions.ts";
import type { ExecutionEvent } from "../../../model/execution-event.ts";
import type { ExecutionId } from "../../../model/execution-id.ts";
import { row, plainOperation } from "../../../sql/operation.ts";
import type { Operation } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { appendTo } from "../log/append-to.ts";
import { hasChildren } from "../control/cancelling.ts";
import type { Endings } from "../context.ts";
import { lockedRecord } from "../state-row.ts";

export interface ExpireLock {
  readonly id: ExecutionId;
  readonly at: number;
  /** A number below 1, for spreading retries. */
  readonly random: number;
  readonly endings: Endings;
}

/**
 * Records that a lock has run out, if it still has: the worker may have
 * extended it or given it back meanwhile.
 */
export const expireLock: Operation<ExpireLock, "expired" | "notExpired"> =
  plainOperation("expireLock", {
    key: (input: ExpireLock) => input.id,
    *one({ id, at, random, endings }) {
      const record = yield* lockedRecord(id);
      const { pending } = record.state;
      if (pending.kind !== "locked" || pending.leaseUntil > at)
        return "notExpired";
      const decision = decideExpiredLock(record.state, at, random);
      const event: ExecutionEvent =
        decision.kind === "unlock"
          ? { kind: "unlocked", dueAt: decision.dueAt, reason: decision.reason }
          : decision.kind === "retry"
            ? { kind: "attemptTimedOut", dueAt: decision.dueAt }
            : endings[decision.resultKind];
      yield* appendTo(record, at, [event]);
      return "expired";
    },
  });

export interface ExpireDeadline {
  readonly id: ExecutionId;
  readonly at: number;
  readonly endings: Endings;
}

/**
 * Ends an execution that was to be done by now. A workflow that runs, and
 * whatever had children, is asked to cancel, since those must end first.
 */
export const expireDeadline: Operation<
  ExpireDeadline,
  "timedOut" | "requested" | "notExpired"
> = plainOperation("expireDeadline", {
  key: (input: ExpireDeadline) => input.id,
  *one({ id, at, endings }) {
    const record = yield* lockedRecord(id);
    const { state } = record;
    const due = yield* row<{ readonly deadline_at: number | null }>(sql`
      SELECT deadline_at FROM holdfast_execution WHERE key = ${record.key}`);
    const deadlineAt = due?.deadline_at ?? null;
    if (deadlineAt === null || deadlineAt > at) return "notExpired";
    const decision = decideDeadline(state, {
      at,
      hasChildren: yield* hasChildren(record.key),
    });
    if (decision === "nothing") return "notExpired";
    if (decision === "mark") {
      yield* appendTo(record, at, [
        {
          kind: "cancellationRequested",
          reason: "the deadline has passed",
          cause: "deadline",
        },
      ]);
      return "requested";
    }
    yield* appendTo(record, at, [endings.timedOut]);
    return "timedOut";
  },
});
