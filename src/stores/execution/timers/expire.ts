import { durationMs, type Duration } from "../../../model/time/durations.ts";
import { isHoldfastError, unreachable } from "../../../model/errors.ts";
import {
  decideDeadline,
  decideExpiredLock,
  type ExpiryDecision,
} from "../../../model/execution/decisions.ts";
import type { ExecutionEvent } from "../../../model/execution/event.ts";
import { isHeld } from "../../../model/execution/pending.ts";
import type { ExecutionId } from "../../../model/ids/execution-id.ts";
import { checkedCount } from "../../../model/shape.ts";
import type { WaitOptions } from "../../../sql/database.ts";
import {
  announce,
  row,
  storeOperation,
  type StoreOperation,
} from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { isDamage, type Damaged } from "../../damage.ts";
import { optionsAndWait } from "../../method.ts";
import { waitUntil } from "../../wait.ts";
import type { Endings, ExecutionContext } from "../context.ts";
import { hasBegun } from "../control/cancelling.ts";
import { appendTo } from "../log/append-to.ts";
import { lockedRecord } from "../state-row.ts";
import { runInterrupted, timerSet } from "../topics.ts";
import { answerDelay } from "./delays.ts";
import {
  earliestTimer,
  expiredTimers,
  timerTables,
  type ExpiredTimer,
  type ExpiredTimers,
  type TimerPlace,
} from "./due.ts";

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
  "expired" | "notExpired"
> = storeOperation("expireLock", {
  key: (input: ExpireLock) => input.id,
  *one({ endings }: ExecutionContext, { id, at, random }) {
    const record = yield* lockedRecord(id);
    const { pending } = record.state;
    if (pending.kind !== "locked" || pending.leaseUntil > at)
      return "notExpired";
    const decision = decideExpiredLock(record.state, at, random);
    const isMarked = decision.kind === "giveUp" && (yield* hasBegun(record));
    yield* appendTo(
      record,
      at,
      isMarked ? markedTimedOut(at) : [eventOfExpiry(decision, endings)],
    );
    return "expired";
  },
});

function eventOfExpiry(
  decision: ExpiryDecision,
  endings: Endings,
): ExecutionEvent {
  switch (decision.kind) {
    case "unlock":
      return {
        kind: "unlocked",
        dueAt: decision.dueAt,
        reason: decision.reason,
      };
    case "retry":
      return { kind: "attemptTimedOut", dueAt: decision.dueAt };
    case "giveUp":
      return endings.timedOut;
    case "finish":
      return endings[decision.resultKind];
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

export interface ExpireOptions extends WaitOptions {
  /** 1 to 1,000; defaults to 100. */
  readonly limit?: number;
  /** Deals only with what has been over for so long, since a busy worker may be about to extend; defaults to 0. */
  readonly leeway?: Duration;
}

export interface ExpireReport {
  readonly delays: number;
  readonly locks: number;
  readonly deadlines: number;
  /** What is over and cannot be dealt with until it is mended. It is passed over, each time anew. */
  readonly damaged: readonly Damaged[];
  /** True when there is more to do at once. */
  readonly hasMore: boolean;
}

/**
 * Page after page until the limit is reached: those that nobody can deal
 * with stay where they are, at the front, and must not hide the rest.
 */
export async function expireTimers(
  context: ExecutionContext,
  options?: ExpireOptions,
): Promise<ExpireReport> {
  const { options: given, wait } = optionsAndWait(options, ["limit", "leeway"]);
  const { limit = 100, leeway = 0 } = given;
  const at = context.clock.now() - durationMs(leeway, "leeway");
  let left = checkedCount("limit", limit, { min: 1, max: 1_000 });
  const counts = { delay: 0, lock: 0, deadline: 0 };
  const damaged: Damaged[] = [];
  let after: TimerPlace | undefined;
  do {
    const page: ExpiredTimers = await context.database.read(
      expiredTimers(context),
      { at, limit: left, after },
      wait,
    );
    damaged.push(...page.damaged);
    for (const outcome of await expireInOrder(context, page.timers, at))
      if (outcome === undefined) continue;
      else if (typeof outcome === "object") damaged.push(outcome);
      else {
        counts[outcome] += 1;
        left -= 1;
      }
    after = page.next;
  } while (after !== undefined && left > 0);
  return {
    delays: counts.delay,
    locks: counts.lock,
    deadlines: counts.deadline,
    damaged,
    hasMore: after !== undefined,
  };
}

/** The kind of a timer that was dealt with; the row when it cannot be; undefined when somebody else did it. */
type Expired = ExpiredTimer["kind"] | Damaged | undefined;

/** Those of one execution one after the other, since the order of its responses is what replay follows. */
async function expireInOrder(
  context: ExecutionContext,
  timers: readonly ExpiredTimer[],
  at: number,
): Promise<readonly Expired[]> {
  const before = new Map<string, Promise<unknown>>();
  return Promise.all(
    timers.map((timer) => {
      const turn = before.get(timer.execution);
      const outcome =
        turn === undefined
          ? expireOne(context, timer, at)
          : turn.then(() => expireOne(context, timer, at));
      before.set(timer.execution, outcome);
      return outcome;
    }),
  );
}

async function expireOne(
  context: ExecutionContext,
  timer: ExpiredTimer,
  at: number,
): Promise<Expired> {
  const { database, random } = context;
  try {
    switch (timer.kind) {
      case "delay": {
        const outcome = await database.write(answerDelay(context), {
          delay: timer.id,
          at,
          outcome: "expired",
        });
        return outcome === "answered" ? "delay" : undefined;
      }
      case "lock": {
        const outcome = await database.write(expireLock(context), {
          id: timer.execution,
          at,
          random: random(),
        });
        return outcome === "expired" ? "lock" : undefined;
      }
      default: {
        const outcome = await database.write(expireDeadline(context), {
          id: timer.execution,
          at,
        });
        return outcome === "notExpired" ? undefined : "deadline";
      }
    }
  } catch (error) {
    const key = timer.kind === "delay" ? timer.id : timer.execution;
    return unlessGone(error, { table: timerTables[timer.kind], key });
  }
}

/**
 * What to say of a row that could not be dealt with: undefined when it was
 * removed since it was found, the row when the database contradicts itself.
 * Anything else is no fault of the row.
 */
export function unlessGone(
  error: unknown,
  found: Damaged,
): Damaged | undefined {
  if (!isHoldfastError(error)) throw error;
  const { code, details } = error;
  if (code === "DELAY_NOT_FOUND") return undefined;
  if (code === "EXECUTION_NOT_FOUND")
    return details?.["missing"] === "parent" ? found : undefined;
  if (code === "RESPONSE_CONFLICT") return found;
  if (!isDamage(error)) throw error;
  const { table, key } = details ?? {};
  return typeof table === "string" ? { table, key: String(key) } : found;
}
