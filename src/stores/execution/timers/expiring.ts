import { durationMs } from "../../../model/durations.ts";
import type { Duration } from "../../../model/durations.ts";
import { isHoldfastError } from "../../../model/errors.ts";
import type { OwnerId } from "../../../model/prefixed-id.ts";
import { checkedCount } from "../../../model/shape.ts";
import type { WaitOptions } from "../../../sql/database.ts";
import { waitUntil } from "../../wait.ts";
import { answerDelay } from "./delays.ts";
import { isDamage } from "../../damage.ts";
import type { Damaged } from "../../damage.ts";
import { earliestTimer, expiredTimers, timerTables } from "../lock/due.ts";
import type { ExpiredTimer, ExpiredTimers, TimerPlace } from "../lock/due.ts";
import type { Surroundings } from "../context.ts";
import { expireDeadline, expireLock } from "./expire.ts";
import { heldBy, nextHolder, releaseDead } from "./release-owner.ts";
import type { Held, HeldPlace } from "./release-owner.ts";
import { timerSet } from "../topics.ts";

export interface ExpireOptions extends WaitOptions {
  /** At most so many: 100 unless told. */
  readonly limit?: number;
  /** Deals only with what has been over for so long: a busy worker may be about to extend. */
  readonly leeway?: Duration;
}

export interface ExpireReport {
  readonly delays: number;
  readonly locks: number;
  readonly deadlines: number;
  /** What is over and cannot be dealt with until somebody mends it. It is passed over, each time anew. */
  readonly damaged: readonly Damaged[];
  /** True when there is more to do at once. */
  readonly hasMore: boolean;
}

export interface ReleaseReport {
  /** Executions that were taken from dead processes. */
  readonly released: number;
  /** Held by a dead process, and not to be released until somebody mends them. */
  readonly damaged: readonly Damaged[];
}

/** Time that passes, and processes that die. */
export interface ExecutionTimers {
  /** When the next delay, lock or deadline is over; undefined when there is none. */
  nextTimerAt(wait?: WaitOptions): Promise<number | undefined>;
  /**
   * Resolves when a delay, lock or deadline is over; sleeps exactly until
   * then. Give the leeway that `expireTimers` is given.
   */
  waitForTimer(
    options?: WaitOptions & Pick<ExpireOptions, "leeway">,
  ): Promise<void>;
  /**
   * Deals with what is over; of one execution in the order of expiry. What
   * somebody else dealt with first is not counted, and what cannot be read or
   * answered stops nothing else. May be repeated.
   */
  expireTimers(options?: ExpireOptions): Promise<ExpireReport>;
  /**
   * Takes from processes that have provably died what they held; those of
   * which nothing is known keep it until their leases end. With an owner, from
   * that one alone: after a `death` hint. Without, from all: when a worker
   * starts, since there may have been nobody to notice. May be repeated.
   */
  releaseDead(owner?: OwnerId): Promise<ReleaseReport>;
}

const heldPerPage = 100;

export function executionTimers(around: Surroundings): ExecutionTimers {
  const { database, clock } = around;
  return {
    nextTimerAt: (wait) => database.read(earliestTimer, undefined, wait),
    waitForTimer: async ({ leeway = 0, ...wait } = {}) => {
      const leewayMs = durationMs(leeway, "leeway");
      return waitUntil<void>(
        database,
        {
          what: "a delay, lock or deadline",
          clock,
          isRelevant: ({ operation }) => operation === timerSet,
          async look() {
            const earliest = await database.read(earliestTimer, undefined);
            if (earliest === undefined) return { isThere: false };
            const again = earliest + leewayMs;
            return again <= clock.now()
              ? { isThere: true, value: undefined }
              : { isThere: false, again };
          },
        },
        wait,
      );
    },
    async expireTimers({ limit = 100, leeway = 0, ...wait } = {}) {
      const at = clock.now() - durationMs(leeway, "leeway");
      return expireAll(
        around,
        at,
        checkedCount("limit", limit, { min: 1, max: 1_000 }),
        wait,
      );
    },
    async releaseDead(owner) {
      if (owner !== undefined) return releaseIfDead(around, owner);
      let released = 0;
      const damaged: Damaged[] = [];
      for (let after = ""; ;) {
        const holder = await database.read(nextHolder, { after });
        if (holder === undefined) return { released, damaged };
        const report = await releaseIfDead(around, holder);
        released += report.released;
        damaged.push(...report.damaged);
        after = holder;
      }
    },
  };
}

/**
 * Page after page until so many are dealt with: those that nobody can deal
 * with stay where they are, at the front, and must not hide the rest.
 */
async function expireAll(
  around: Surroundings,
  at: number,
  limit: number,
  wait: WaitOptions,
): Promise<ExpireReport> {
  const counts = { delay: 0, lock: 0, deadline: 0 };
  const damaged: Damaged[] = [];
  let left = limit;
  let after: TimerPlace | undefined;
  do {
    const page: ExpiredTimers = await around.database.read(
      expiredTimers,
      { at, limit: left, after },
      wait,
    );
    damaged.push(...page.damaged);
    for (const outcome of await expireInOrder(around, page.timers, at))
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
  around: Surroundings,
  timers: readonly ExpiredTimer[],
  at: number,
): Promise<readonly Expired[]> {
  const before = new Map<string, Promise<unknown>>();
  return Promise.all(
    timers.map((timer) => {
      const turn = before.get(timer.execution);
      const outcome =
        turn === undefined
          ? expired(around, timer, at)
          : turn.then(() => expired(around, timer, at));
      before.set(timer.execution, outcome);
      return outcome;
    }),
  );
}

async function expired(
  { database, random, endings }: Surroundings,
  timer: ExpiredTimer,
  at: number,
): Promise<Expired> {
  try {
    switch (timer.kind) {
      case "delay": {
        const outcome = await database.write(answerDelay, {
          delay: timer.id,
          at,
          outcome: "expired",
        });
        return outcome === "answered" ? "delay" : undefined;
      }
      case "lock": {
        const outcome = await database.write(expireLock, {
          id: timer.execution,
          at,
          random: random(),
          endings,
        });
        return outcome === "expired" ? "lock" : undefined;
      }
      default: {
        const outcome = await database.write(expireDeadline, {
          id: timer.execution,
          at,
          endings,
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
function unlessGone(error: unknown, row: Damaged): Damaged | undefined {
  if (!isHoldfastError(error)) throw error;
  const { code, details } = error;
  if (code === "DELAY_NOT_FOUND") return undefined;
  if (code === "EXECUTION_NOT_FOUND")
    return details?.["missing"] === "parent" ? row : undefined;
  if (code === "RESPONSE_CONFLICT") return row;
  if (!isDamage(error)) throw error;
  const { table, key } = details ?? {};
  return typeof table === "string" ? { table, key: String(key) } : row;
}

async function releaseIfDead(
  { database, clock, random, endings }: Surroundings,
  owner: OwnerId,
): Promise<ReleaseReport> {
  let released = 0;
  const damaged: Damaged[] = [];
  if ((await database.liveness(owner)) !== "dead") return { released, damaged };
  let after: HeldPlace | undefined;
  do {
    const at = clock.now();
    const limit = heldPerPage;
    const page: Held = await database.read(heldBy, { owner, at, limit, after });
    const outcomes = await Promise.all(
      page.ids.map((id) =>
        database
          .write(releaseDead, { id, owner, at, random: random(), endings })
          .catch((error: unknown) =>
            unlessGone(error, { table: "holdfast_execution", key: id }),
          ),
      ),
    );
    for (const outcome of outcomes)
      if (outcome === "released") released += 1;
      else if (typeof outcome === "object") damaged.push(outcome);
    after = page.next;
  } while (after !== undefined);
  return { released, damaged };
}
