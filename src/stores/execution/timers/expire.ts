import { durationMs, type Duration } from "../../../model/time/durations.ts";
import { unreachable } from "../../../model/errors.ts";
import {
  aloneDeathsMax,
  decideDeadline,
  decideExpiredLock,
} from "../../../model/execution/decisions.ts";
import type { ExecutionEvent } from "../../../model/execution/event.ts";
import { isHeld } from "../../../model/execution/pending.ts";
import type { ExecutionId } from "../../../model/ids/execution-id.ts";
import type { WaitOptions } from "../../../sql/database.ts";
import { announce, row, storeOperation, type Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { optionsAndWait } from "../../method.ts";
import { waitUntil } from "../../wait.ts";
import type { Endings, ExecutionContext } from "../context.ts";
import { hasBegun } from "../control/cancelling.ts";
import { appendTo, effectsOf } from "../log/append-to.ts";
import { lockedRecord } from "../state-row.ts";
import { runInterrupted, timerSet } from "../topics.ts";
import { earliestTimer } from "./due.ts";
import { hasRecorded, isOwnerAlive, whenPoisoned } from "./lost-lock.ts";
import { noteOf, type Noted } from "./notes.ts";

export interface ExpireLock {
  readonly id: ExecutionId;
  readonly at: number;
  /** A number below 1, for spreading retries. */
  readonly random: number;
}

/**
 * Records that a lock has expired, unless the worker has since extended or released it.
 */
export const expireLock = storeOperation("expireLock", {
  key: (input) => input.id,
  *one(
    context: ExecutionContext,
    { id, at, random }: ExpireLock,
  ): Tx<Noted<"expired" | "parked" | "cancelled" | "notExpired">> {
    const record = yield* lockedRecord(id);
    const { pending } = record.state;
    if (pending.kind !== "locked" || pending.leaseUntil > at) return { outcome: "notExpired" };
    const decision = decideExpiredLock(record.state, {
      at,
      random,
      hasRecorded: yield* hasRecorded(record),
      whenPoisoned: yield* whenPoisoned(record),
      isOwnerAlive: yield* isOwnerAlive(record.key, pending),
    });
    const events = eventsOfExpiry(decision, at, context.endings);
    const effects = effectsOf({});
    yield* appendTo(context, record, at, events, effects);
    const outcome = convictedBy(decision) ?? "expired";
    return { outcome, note: noteOf(record, events, effects) };
  },
});

const fiveDeaths = `${aloneDeathsMax} processes died, or stopped renewing their lock, while they ran it and nothing else, without progress in between.`;

/** The event appended after the last of too many deaths. */
const parkedForDeaths: Extract<ExecutionEvent, { readonly kind: "parked" }> = {
  kind: "parked",
  code: "RUN_KEEPS_KILLING_WORKERS",
  reason: `${fiveDeaths} Find the cause in its code or its memory use, then unpark it.`,
  // Other code may kill its workers in the same way: an operator must look at it.
  codeVersion: null,
};

/** The same for a function that wants its convicted runs cancelled. */
const cancelledForDeaths: Extract<ExecutionEvent, { readonly kind: "cancellationRequested" }> = {
  kind: "cancellationRequested",
  reason: fiveDeaths,
  cause: "deaths",
};

/** The event of a conviction. */
export const convictions = { park: parkedForDeaths, cancel: cancelledForDeaths } as const;

/** The outcome of a loss that convicted the execution; undefined for any other loss. */
export function convictedBy({
  kind,
}: {
  readonly kind: string;
}): "parked" | "cancelled" | undefined {
  if (kind === "park") return "parked";
  return kind === "cancel" ? "cancelled" : undefined;
}

function eventsOfExpiry(
  decision: ReturnType<typeof decideExpiredLock>,
  at: number,
  endings: Endings,
): readonly ExecutionEvent[] {
  switch (decision.kind) {
    case "unlock":
      return [{ kind: "unlocked", dueAt: decision.dueAt, reason: decision.reason }];
    case "resume":
      return [{ kind: "attemptTimedOut", dueAt: decision.dueAt, counts: decision.counts }];
    case "park":
    case "cancel":
      return [
        { kind: "attemptTimedOut", dueAt: at, counts: decision.counts },
        convictions[decision.kind],
      ];
    case "finish":
      return [endings[decision.resultKind === "cancelled" ? "cancelled" : "timedOut"]];
    default:
      return unreachable(decision);
  }
}

export interface ExpireDeadline {
  readonly id: ExecutionId;
  readonly at: number;
}

/**
 * Ends an execution whose deadline has passed. A workflow that runs or has a history, and any
 * execution that had children, is asked to end by itself.
 */
export const expireDeadline = storeOperation("expireDeadline", {
  key: (input) => input.id,
  *one(
    context: ExecutionContext,
    { id, at }: ExpireDeadline,
  ): Tx<Noted<"timedOut" | "requested" | "notExpired">> {
    const record = yield* lockedRecord(id);
    const { state } = record;
    const due = yield* row<{ readonly deadline_at: number | null }>(sql`
      SELECT deadline_at FROM holdfast_execution WHERE key = ${record.key}`);
    const deadlineAt = due?.deadline_at ?? null;
    if (deadlineAt === null || deadlineAt > at) return { outcome: "notExpired" };
    const decision = decideDeadline(state, {
      at,
      hasBegun: yield* hasBegun(record),
    });
    if (decision === "nothing") return { outcome: "notExpired" };
    if (decision === "mark") {
      yield* appendTo(context, record, at, [
        {
          kind: "cancellationRequested",
          reason: "the deadline has passed",
          cause: "deadline",
        },
      ]);
      return { outcome: "requested" };
    }
    const effects = effectsOf({});
    const events = [context.endings.timedOut];
    yield* appendTo(context, record, at, events, effects);
    if (isHeld(state.pending, at)) yield* announce(runInterrupted, id);
    return { outcome: "timedOut", note: noteOf(record, events, effects) };
  },
});

/** Options of the wait. Pass the same leeway as to `expireTimers`. */
export interface TimerWaitOptions extends WaitOptions {
  readonly leeway?: Duration;
}

/** Resolves when a delay, lock or deadline has expired, and sleeps exactly until then. */
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
