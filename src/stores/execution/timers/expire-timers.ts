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
import { expireDeadline, expireLock } from "./expire.ts";
import {
  addNote,
  noNotes,
  type AttemptLost,
  type Convicted,
  type EndedWithoutCode,
  type Note,
  type Parked,
} from "./notes.ts";

export interface ExpireOptions extends WaitOptions {
  /** The maximum number of timers, 1 to 1,000; defaults to 100. */
  readonly limit?: number;
  /**
   * Handles only timers that expired at least this long ago, since a busy worker may be about to
   * extend its lock; defaults to 0.
   */
  readonly leeway?: Duration;
}

export interface ExpireReport {
  readonly delays: number;
  readonly locks: number;
  readonly deadlines: number;
  /** Executions parked because their lock expired once too often; they count among the locks. */
  readonly parked: readonly Parked[];
  /** The same, of functions whose runs are cancelled then (`whenPoisoned`). */
  readonly cancelled: readonly Convicted[];
  /** Executions that a deadline or an expired lock ended. */
  readonly ended: readonly EndedWithoutCode[];
  /** Attempts of activities whose lock expired, and that are made again. */
  readonly attemptsLost: readonly AttemptLost[];
  /**
   * Damaged rows that cannot be handled until they are fixed. Every call skips and reports them.
   */
  readonly damaged: readonly Damaged[];
  /** True if more timers can be handled at once. */
  readonly hasMore: boolean;
}

/**
 * Handles page after page until the limit is reached. Timers that cannot be handled stay at the
 * front, and must not hide the rest.
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
  const notes = noNotes();
  const damaged: Damaged[] = [];
  let after: TimerPlace | undefined;
  let failed: Failure | undefined;
  do {
    const looking = context.database.read(expiredTimers(context), { at, limit: left, after }, wait);
    const page: ExpiredTimers | Failure = await looking.catch((failure: unknown) => ({ failure }));
    if (isFailure(page)) {
      failed = page;
      break;
    }
    damaged.push(...page.damaged);
    const outcomes = await expirePage(context, page.timers, at);
    failed = outcomes.find(isFailure);
    for (const outcome of outcomes)
      if (outcome === undefined || isFailure(outcome)) continue;
      else if (typeof outcome === "object" && "table" in outcome) damaged.push(outcome);
      else {
        const { kind, note } = typeof outcome === "object" ? outcome : { kind: outcome };
        if (note !== undefined) addNote(notes, note);
        counts[kind] += 1;
        left -= 1;
      }
    after = page.next;
  } while (failed === undefined && after !== undefined && left > 0);
  // Whatever was recorded is reported here or never. The next call meets the failure again.
  const handled = counts.delay + counts.lock + counts.deadline;
  if (failed !== undefined && handled === 0) throw failed.failure;
  return {
    delays: counts.delay,
    locks: counts.lock,
    deadlines: counts.deadline,
    ...notes,
    damaged,
    hasMore: failed !== undefined || after !== undefined,
  };
}

/**
 * The kind of a handled timer, with a note to report, or the row that cannot be
 * handled; undefined when another process handled it.
 */
type Expired = ExpiredTimer["kind"] | NotedTimer | Damaged | Failure | undefined;

/** A timer that is left, since the database did not handle it. */
interface Failure {
  readonly failure: unknown;
}

function isFailure(outcome: object | string | undefined): outcome is Failure {
  return typeof outcome === "object" && "failure" in outcome;
}

interface NotedTimer {
  readonly kind: ExpiredTimer["kind"];
  readonly note?: Note | undefined;
}

type ExpiredDelay = Extract<ExpiredTimer, { readonly kind: "delay" }>;

/**
 * Handles delays together, except for executions with another expired timer: there the order
 * counts.
 */
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

/** The number of delays that block the event loop only briefly on SQLite. */
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
 * Delays that remain were locked by other transactions, which most likely answer the same delays.
 * This waits for one of them; after that, all delays of that holder are gone. The rest, if any, has
 * another holder, so the number of rounds is the number of holders.
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
    if (isFailure(page)) return [...outcomes, page];
    // Answering each delay by itself shows which one is damaged.
    if (page === undefined) return [...outcomes, ...(await expireInOrder(context, left, at))];
    for (let count = 0; count < page.answered; count += 1) outcomes.push("delay");
    const [first, ...others] = left.filter(({ id }) => page.left.has(id));
    if (first !== undefined) outcomes.push(await expireOne(context, first, at));
    left = others;
  }
  return outcomes;
}

/**
 * Answers the delays that no other transaction has locked; undefined if one of them cannot be
 * answered.
 */
async function answered(
  context: ExecutionContext,
  delays: readonly ExpiredDelay[],
  at: number,
): Promise<
  { readonly answered: number; readonly left: ReadonlySet<string> } | Failure | undefined
> {
  const input = { delays: delays.map(({ id }) => id), at };
  try {
    const outcome = await context.database.write(answerDueDelays(context), input);
    return { answered: outcome.answered, left: new Set(outcome.left) };
  } catch (error) {
    return !isHoldfastError(error) || error.retryable ? { failure: error } : undefined;
  }
}

/**
 * Handles the timers of one execution one by one, since replay follows the order of its responses.
 */
async function expireInOrder(
  context: ExecutionContext,
  timers: readonly ExpiredTimer[],
  at: number,
): Promise<readonly Expired[]> {
  const before = new Map<string, Promise<Expired>>();
  return Promise.all(
    timers.map((timer) => {
      const turn = before.get(timer.execution);
      const outcome =
        turn === undefined
          ? expireOne(context, timer, at)
          : turn.then((last) => (isFailure(last) ? last : expireOne(context, timer, at)));
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
        const { outcome, note } = await database.write(expireLock(context), {
          id: timer.execution,
          at,
          random: random(),
        });
        return outcome === "notExpired" ? undefined : { kind: "lock", note };
      }
      default: {
        const { outcome, note } = await database.write(expireDeadline(context), {
          id: timer.execution,
          at,
        });
        return outcome === "notExpired" ? undefined : { kind: "deadline", note };
      }
    }
  } catch (error) {
    const key = timer.kind === "delay" ? timer.id : timer.execution;
    try {
      return unlessGone(error, { table: timerTables[timer.kind], key });
    } catch (failure) {
      return { failure };
    }
  }
}

/**
 * Maps an error to the result for a row that could not be handled. Undefined if the row has since
 * been removed, the row if the database contradicts itself. Any other error is not the row's fault.
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
