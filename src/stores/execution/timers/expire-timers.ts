import { isHoldfastError } from "../../../model/errors.ts";
import { checkedCount } from "../../../model/shape.ts";
import { durationMs, type Duration } from "../../../model/time/durations.ts";
import type { WaitOptions } from "../../../sql/database.ts";
import { isDamage, type Damaged } from "../../damage.ts";
import { optionsAndWait } from "../../method.ts";
import type { ExecutionContext } from "../context.ts";
import { answerDueDelays } from "./answer-due.ts";
import { answerDelay } from "./delays.ts";
import {
  expiredTimers,
  timerTables,
  type ExpiredTimer,
  type ExpiredTimers,
  type TimerPlace,
} from "./due.ts";
import { expireDeadline, expireLock, parkedAfterDeaths, type Parked } from "./expire.ts";

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
  /** Those whose lock ran out once too often; they count among the locks. */
  readonly parked: readonly Parked[];
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
  const parked: Parked[] = [];
  const damaged: Damaged[] = [];
  let after: TimerPlace | undefined;
  do {
    const page: ExpiredTimers = await context.database.read(
      expiredTimers(context),
      { at, limit: left, after },
      wait,
    );
    damaged.push(...page.damaged);
    for (const outcome of await expirePage(context, page.timers, at))
      if (outcome === undefined) continue;
      else if (typeof outcome === "object" && "table" in outcome) damaged.push(outcome);
      else {
        if (typeof outcome === "object") parked.push(outcome);
        counts[typeof outcome === "object" ? "lock" : outcome] += 1;
        left -= 1;
      }
    after = page.next;
  } while (after !== undefined && left > 0);
  return {
    delays: counts.delay,
    locks: counts.lock,
    deadlines: counts.deadline,
    parked,
    damaged,
    hasMore: after !== undefined,
  };
}

/** The kind of a timer that was dealt with, or what its end has parked; the row when it cannot be; undefined when somebody else did it. */
type Expired = ExpiredTimer["kind"] | Parked | Damaged | undefined;

type ExpiredDelay = Extract<ExpiredTimer, { readonly kind: "delay" }>;

/** Delays together, but for those of executions of which something else is over too: there the order counts. */
async function expirePage(
  context: ExecutionContext,
  timers: readonly ExpiredTimer[],
  at: number,
): Promise<readonly Expired[]> {
  const apart = new Set<string>();
  for (const { kind, execution } of timers) if (kind !== "delay") apart.add(execution);
  const delays: ExpiredDelay[] = [];
  const others: ExpiredTimer[] = [];
  for (const timer of timers)
    if (timer.kind === "delay" && !apart.has(timer.execution)) delays.push(timer);
    else others.push(timer);
  const outcomes = await Promise.all([
    expireTogether(context, delays, at),
    expireInOrder(context, others, at),
  ]);
  return outcomes.flat();
}

/** So many at once take a moment of the event loop on SQLite. */
const delaysPerWrite = 100;

async function expireTogether(
  context: ExecutionContext,
  delays: readonly ExpiredDelay[],
  at: number,
): Promise<readonly Expired[]> {
  const parts: Promise<readonly Expired[]>[] = [];
  for (let from = 0; from < delays.length; from += delaysPerWrite)
    parts.push(expireSome(context, delays.slice(from, from + delaysPerWrite), at));
  return (await Promise.all(parts)).flat();
}

/**
 * What is left was locked by others, who most likely answer these very delays.
 * One of them is waited for, and then what its holder had is there no more; the
 * rest, if any, has another holder, so this takes as many rounds as there are.
 */
async function expireSome(
  context: ExecutionContext,
  delays: readonly ExpiredDelay[],
  at: number,
): Promise<readonly Expired[]> {
  const outcomes: Expired[] = [];
  let left = delays;
  while (left.length > 0) {
    const page = await answered(context, left, at);
    // Which of them is to blame shows when each is answered by itself.
    if (page === undefined) return [...outcomes, ...(await expireInOrder(context, left, at))];
    for (let count = 0; count < page.answered; count += 1) outcomes.push("delay");
    const [first, ...others] = left.filter(({ id }) => page.left.has(id));
    if (first !== undefined) outcomes.push(await expireOne(context, first, at));
    left = others;
  }
  return outcomes;
}

/** Answers those that nobody has locked; undefined when one of them cannot be answered. */
async function answered(
  context: ExecutionContext,
  delays: readonly ExpiredDelay[],
  at: number,
): Promise<{ readonly answered: number; readonly left: ReadonlySet<string> } | undefined> {
  const input = { delays: delays.map(({ id }) => id), at };
  try {
    const outcome = await context.database.write(answerDueDelays(context), input);
    return { answered: outcome.answered, left: new Set(outcome.left) };
  } catch (error) {
    if (!isHoldfastError(error) || error.retryable) throw error;
    return undefined;
  }
}

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
        if (outcome === "parked") return parkedAfterDeaths(timer.execution);
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
export function unlessGone(error: unknown, found: Damaged): Damaged | undefined {
  if (!isHoldfastError(error)) throw error;
  const { code, details } = error;
  if (code === "DELAY_NOT_FOUND") return undefined;
  if (code === "EXECUTION_NOT_FOUND") return details?.["missing"] === "parent" ? found : undefined;
  if (code === "RESPONSE_CONFLICT") return found;
  if (!isDamage(error)) throw error;
  const { table, key } = details ?? {};
  return typeof table === "string" ? { table, key: String(key) } : found;
}
