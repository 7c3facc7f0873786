import { parseDelayId, type DelayId } from "../../../model/ids/delay-id.ts";
import type { Holder } from "../../../model/execution/event.ts";
import type { ExecutionId } from "../../../model/ids/execution-id.ts";
import { parseJoinSetId, type JoinSetId } from "../../../model/ids/join-set-id.ts";
import type { RetryPolicy } from "../../../model/time/retry-policy.ts";
import type { WaitOptions } from "../../../sql/database.ts";
import { row, rows, storeOperation, type StoreOperation, type Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { undamaged, type Damaged } from "../../damage.ts";
import { onlyWait, type Call } from "../../method.ts";
import type { ExecutionContext } from "../context.ts";
import { recordOf, stateColumns, type StateRow } from "../state-row.ts";

/**
 * Finds expired timers. Every query is a lookup at the front of an index, regardless of the number
 * of executions that sleep behind it.
 */

export function givenTimerWait(_: ExecutionContext, wait?: WaitOptions): Call<undefined> {
  return { input: undefined, wait: onlyWait(wait) };
}

/**
 * The next instant at which a delay, lock or deadline expires; undefined when there is none. A
 * damaged row that no handler can process stays the earliest: sleep a while after a round that
 * processed nothing.
 */
export const earliestTimer: StoreOperation<ExecutionContext, undefined, number | undefined> =
  storeOperation("earliestTimer", {
    key: () => "",
    *one() {
      const found = yield* row<Readonly<Record<string, number | null>>>(sql`
        SELECT
          (SELECT expires_at FROM holdfast_execution_delay
           WHERE is_paused = 0 ORDER BY expires_at, id LIMIT 1) AS delay,
          (SELECT lease_until FROM holdfast_execution
           WHERE state = 'locked' ORDER BY lease_until, id LIMIT 1) AS lock,
          (SELECT deadline_at FROM holdfast_execution
           WHERE deadline_at IS NOT NULL AND state <> 'finished' AND lifecycle <> 'cancelling'
           ORDER BY deadline_at, id LIMIT 1) AS deadline`);
      const instants = Object.values(found ?? {}).filter((instant) => instant !== null);
      return instants.length === 0 ? undefined : Math.min(...instants);
    },
  });

/** An expired delay, lock or deadline that is not yet handled. */
export type ExpiredTimer =
  | {
      readonly kind: "delay";
      readonly expiresAt: number;
      readonly id: DelayId;
      readonly execution: ExecutionId;
      readonly joinSet: JoinSetId;
    }
  | {
      readonly kind: "lock";
      readonly expiresAt: number;
      readonly execution: ExecutionId;
      readonly lockedAtVersion: number;
      readonly nextVersion: number;
      /** Attempts that failed before the one that this lock was for. */
      readonly failures: number;
      readonly retry: RetryPolicy;
      readonly holder: Holder;
    }
  | {
      readonly kind: "deadline";
      readonly expiresAt: number;
      readonly execution: ExecutionId;
    };

/** The place of a timer in the order of expiry; equal instants are ordered by kind, then by id. */
export interface TimerPlace {
  readonly expiresAt: number;
  readonly kind: ExpiredTimer["kind"];
  readonly id: string;
}

export interface ExpiredTimers {
  readonly timers: readonly ExpiredTimer[];
  /** Unreadable rows, which were skipped. */
  readonly damaged: readonly Damaged[];
  /** The place to continue from, if there are more. */
  readonly next: TimerPlace | undefined;
}

interface ExpiredBy {
  /** The latest instant of expiry. */
  readonly at: number;
  readonly limit: number;
  /** The `next` of the previous page. */
  readonly after?: TimerPlace | undefined;
}

/**
 * A page of expired timers, in the order of expiry. Handled timers are gone, so starting from the
 * beginning again is right too, unless an unhandled timer blocks the front.
 */
export const expiredTimers = storeOperation("expiredTimers", {
  key: () => "",
  *one(_: ExecutionContext, input: ExpiredBy): Tx<ExpiredTimers> {
    const found = [
      ...(yield* expiredDelays(input)),
      ...(yield* expiredLocks(input)),
      ...(yield* expiredDeadlines(input)),
    ].toSorted(inOrder);
    const page = found.slice(0, input.limit);
    return {
      timers: page.flatMap(({ timer }) => timer ?? []),
      damaged: page.flatMap(({ place: { kind, id }, timer }) =>
        timer === undefined ? { table: timerTables[kind], key: id } : [],
      ),
      next: found.length > input.limit ? page.at(-1)?.place : undefined,
    };
  },
});

interface Found {
  readonly place: TimerPlace;
  /** Undefined if the row is unreadable. */
  readonly timer: ExpiredTimer | undefined;
}

export const timerTables = {
  delay: "holdfast_execution_delay",
  lock: "holdfast_execution",
  deadline: "holdfast_execution",
} as const;

/** A delay comes first: a lock or a deadline may have been waiting for its response. */
const ranks = { delay: 0, lock: 1, deadline: 2 } as const;

function inOrder({ place: a }: Found, { place: b }: Found): number {
  return a.expiresAt - b.expiresAt || ranks[a.kind] - ranks[b.kind] || (a.id < b.id ? -1 : 1);
}

/** The place in one index after which a page begins. */
function startIn(
  kind: ExpiredTimer["kind"],
  after: TimerPlace | undefined,
): { readonly instant: number; readonly id: string } {
  if (after === undefined) return { instant: Number.MIN_SAFE_INTEGER, id: "" };
  const { expiresAt, id } = after;
  if (kind === after.kind) return { instant: expiresAt, id };
  return ranks[kind] > ranks[after.kind]
    ? { instant: expiresAt, id: "" }
    : { instant: expiresAt + 1, id: "" };
}

function* expiredDelays({ at, limit, after }: ExpiredBy): Tx<readonly Found[]> {
  const start = startIn("delay", after);
  const found = yield* rows<{
    readonly id: string;
    readonly inbox: string;
    readonly expires_at: number;
    readonly execution: ExecutionId | null;
  }>(sql`
    SELECT d.id, d.inbox, d.expires_at, x.id AS execution FROM holdfast_execution_delay d
      LEFT JOIN holdfast_execution x ON x.key = d.execution
    WHERE d.is_paused = 0 AND d.expires_at <= ${at} AND (d.expires_at, d.id) > (${start.instant}, ${start.id})
    ORDER BY d.expires_at, d.id LIMIT ${limit + 1}`);
  return found.map(({ id, inbox, expires_at: expiresAt, execution }) => ({
    place: { expiresAt, kind: "delay", id },
    timer: undamaged<ExpiredTimer | undefined>(() =>
      execution === null
        ? undefined
        : {
            kind: "delay",
            expiresAt,
            id: parseDelayId(id),
            execution,
            joinSet: parseJoinSetId(inbox),
          },
    ),
  }));
}

function* expiredLocks({ at, limit, after }: ExpiredBy): Tx<readonly Found[]> {
  const start = startIn("lock", after);
  const found = yield* rows<StateRow & { readonly lease_until: number }>(sql`
    SELECT ${stateColumns} FROM holdfast_execution
    WHERE state = 'locked' AND lease_until <= ${at} AND (lease_until, id) > (${start.instant}, ${start.id})
    ORDER BY lease_until, id LIMIT ${limit + 1}`);
  return found.map((locked) => ({
    place: { expiresAt: locked.lease_until, kind: "lock", id: locked.id },
    timer: undamaged<ExpiredTimer | undefined>(() => expiredLock(locked)),
  }));
}

function expiredLock(locked: StateRow): ExpiredTimer | undefined {
  const { id: execution, state } = recordOf(locked);
  const { pending, version, failures, retry } = state;
  if (pending.kind !== "locked" || retry === null) return undefined;
  return {
    kind: "lock",
    expiresAt: pending.leaseUntil,
    execution,
    lockedAtVersion: pending.lockVersion,
    nextVersion: version + 1,
    failures,
    retry,
    holder: pending.holder,
  };
}

function* expiredDeadlines({ at, limit, after }: ExpiredBy): Tx<readonly Found[]> {
  const start = startIn("deadline", after);
  const found = yield* rows<{
    readonly id: ExecutionId;
    readonly deadline_at: number;
  }>(sql`
    SELECT id, deadline_at FROM holdfast_execution
    WHERE deadline_at IS NOT NULL AND state <> 'finished' AND lifecycle <> 'cancelling'
      AND deadline_at <= ${at} AND (deadline_at, id) > (${start.instant}, ${start.id})
    ORDER BY deadline_at, id LIMIT ${limit + 1}`);
  return found.map(({ id: execution, deadline_at: expiresAt }) => ({
    place: { expiresAt, kind: "deadline", id: execution },
    timer: { kind: "deadline", expiresAt, execution },
  }));
}
