import { durationMs, type Duration } from "../../../model/time/durations.ts";
import { unreachable } from "../../../model/errors.ts";
import {
  deathsMax,
  decideDeadline,
  decideExpiredLock,
  type ExpiryDecision,
} from "../../../model/execution/decisions.ts";
import type { ExecutionEvent } from "../../../model/execution/event.ts";
import { isHeld } from "../../../model/execution/pending.ts";
import type { ExecutionId } from "../../../model/ids/execution-id.ts";
import type { WaitOptions } from "../../../sql/database.ts";
import { announce, row, storeOperation, type StoreOperation } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { optionsAndWait } from "../../method.ts";
import { waitUntil } from "../../wait.ts";
import type { Endings, ExecutionContext } from "../context.ts";
import { hasBegun } from "../control/cancelling.ts";
import { appendTo } from "../log/append-to.ts";
import { lockedRecord } from "../state-row.ts";
import { runInterrupted, timerSet } from "../topics.ts";
import { earliestTimer } from "./due.ts";

export interface ExpireLock {
  readonly id: ExecutionId;
  readonly at: number;
  /** A number below 1, for spreading retries. */
  readonly random: number;
}

/**
 * Records that a lock has run out, if it still has: the worker may have
 * extended or released it meanwhile.
 */
export const expireLock: StoreOperation<
  ExecutionContext,
  ExpireLock,
  "expired" | "parked" | "notExpired"
> = storeOperation("expireLock", {
  key: (input: ExpireLock) => input.id,
  *one({ endings }: ExecutionContext, { id, at, random }) {
    const record = yield* lockedRecord(id);
    const { pending } = record.state;
    if (pending.kind !== "locked" || pending.leaseUntil > at) return "notExpired";
    const decision = decideExpiredLock(record.state, at, random);
    const isMarked = decision.kind === "giveUp" && (yield* hasBegun(record));
    yield* appendTo(
      record,
      at,
      isMarked ? markedTimedOut(at) : eventsOfExpiry(decision, at, endings),
    );
    return decision.kind === "park" ? "parked" : "expired";
  },
});

/** What is appended behind the last of too many deaths. */
export const parkedForDeaths: Extract<ExecutionEvent, { readonly kind: "parked" }> = {
  kind: "parked",
  code: "RUN_KEEPS_KILLING_WORKERS",
  reason: `${deathsMax} processes in a row died while they ran it, or did not renew their lock in time, without progress in between.`,
  // Other code may do the same to its workers: somebody is to look at it.
  codeVersion: null,
};

/** An execution that was set aside while time passed: no code of its own runs that could tell it. */
export interface Parked {
  readonly id: ExecutionId;
  readonly code: string;
  readonly reason: string;
}

export function parkedAfterDeaths(id: ExecutionId): Parked {
  const { code, reason } = parkedForDeaths;
  return { id, code, reason };
}

function eventsOfExpiry(
  decision: ExpiryDecision,
  at: number,
  endings: Endings,
): readonly ExecutionEvent[] {
  switch (decision.kind) {
    case "unlock":
      return [{ kind: "unlocked", dueAt: decision.dueAt, reason: decision.reason }];
    case "retry":
      return [{ kind: "attemptTimedOut", dueAt: decision.dueAt }];
    case "park":
      return [{ kind: "attemptTimedOut", dueAt: at }, parkedForDeaths];
    case "giveUp":
      return [endings.timedOut];
    case "finish":
      return [endings[decision.resultKind]];
    default:
      return unreachable(decision);
  }
}

/** The last attempt timed out, and what the run has begun is for its code to end: as when its deadline had passed. */
function markedTimedOut(at: number): readonly ExecutionEvent[] {
  return [
    { kind: "attemptTimedOut", dueAt: at },
    {
      kind: "cancellationRequested",
      reason: "the last attempt timed out",
      cause: "deadline",
    },
  ];
}

export interface ExpireDeadline {
  readonly id: ExecutionId;
  readonly at: number;
}

/**
 * Ends an execution that was to be done by now. A workflow that runs or has a
 * history, and whatever had children, is asked to end by itself.
 */
export const expireDeadline: StoreOperation<
  ExecutionContext,
  ExpireDeadline,
  "timedOut" | "requested" | "notExpired"
> = storeOperation("expireDeadline", {
  key: (input: ExpireDeadline) => input.id,
  *one({ endings }: ExecutionContext, { id, at }) {
    const record = yield* lockedRecord(id);
    const { state } = record;
    const due = yield* row<{ readonly deadline_at: number | null }>(sql`
      SELECT deadline_at FROM holdfast_execution WHERE key = ${record.key}`);
    const deadlineAt = due?.deadline_at ?? null;
    if (deadlineAt === null || deadlineAt > at) return "notExpired";
    const decision = decideDeadline(state, {
      at,
      hasBegun: yield* hasBegun(record),
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
    if (isHeld(state.pending, at)) yield* announce(runInterrupted, id);
    return "timedOut";
  },
});

/** Give it the leeway that `expireTimers` is given. */
export interface TimerWaitOptions extends WaitOptions {
  readonly leeway?: Duration;
}

/** Resolves when a delay, lock or deadline is over; sleeps exactly until then. */
export async function waitForTimer(
  context: ExecutionContext,
  options?: TimerWaitOptions,
): Promise<void> {
  const { database, clock } = context;
  const { options: given, wait } = optionsAndWait(options, ["leeway"]);
  const leewayMs = durationMs(given.leeway ?? 0, "leeway");
  return waitUntil<void>(
    database,
    {
      what: "a delay, lock or deadline",
      clock,
      interests: [{ operation: timerSet }],
      async look() {
        const earliest = await database.read(earliestTimer(context), undefined);
        if (earliest === undefined) return { isThere: false };
        const again = earliest + leewayMs;
        return again <= clock.now()
          ? { isThere: true, value: undefined }
          : { isThere: false, again };
      },
    },
    wait,
  );
}
