import type { Clock } from "../../model/time/clock.ts";
import { HoldfastError, isFinal, isHoldfastError } from "../../model/errors.ts";
import {
  backoffMs,
  planDue,
  type SchedulePlan,
  type SkippedInstants,
} from "../../model/trigger/schedule-plan.ts";
import type { Database } from "../../sql/database.ts";
import type { Isolation } from "../../sql/isolation.ts";
import type { Operation } from "../../sql/operation.ts";
import { sleepUntil, waitUntil } from "../wait.ts";
import { instantsOf } from "./cadence.ts";
import {
  dueSchedules,
  postponeSchedule,
  standsAsSeen,
  type DueSchedule,
  type FireInput,
  type FireOutcome,
  type PostponeInput,
} from "./fire.ts";
import {
  scheduleChanged,
  type FiredInstant,
  type FireSchedule,
  type ScheduleName,
  type Scheduler,
  type SchedulerOptions,
} from "./schedule-row.ts";

/** The number of schedules that fire side by side, and the number of instants of each in a row. */
const schedulesPerRound = 64;
const instantsPerRound = 32;

/**
 * Finding an instant of a cron expression takes 0.1 ms. After this many the rest of the process
 * runs.
 */
const stepsPerTurn = 16;

/**
 * The number of schedules whose unfinished plans are kept for the next round: making a plan again
 * would take longer than firing it.
 */
const schedulesLeftMax = 256;

/** An older plan is made again, since its newest instants may no longer be the newest. */
const planMsMax = 60_000;

export interface SchedulerContext {
  readonly database: Database;
  readonly clock: Clock;
  /** The operation that fires: for Holdfast's own parts or for those of a user. */
  readonly firing: Operation<FireInput, FireOutcome>;
  readonly isolation?: Isolation | undefined;
  /** Only the schedules with these names are fired; all by default. */
  readonly names?: readonly string[] | undefined;
}

/**
 * Fires schedules until it is closed. Sleeps until the earliest `due_at`; `schedule.changed` wakes
 * it. A look is one step at the front of an index for each kind, and the longest waiting schedule
 * comes first. A row advances only if it is unchanged since it was seen, in the transaction of the
 * fired part (`fire.ts`). `next_at` only grows, even when clocks are set back, so no instant fires
 * twice. A failing schedule is postponed (`due_at` moves, `next_at` stays), and the others
 * continue.
 */
export class RunningScheduler implements Scheduler {
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #firing: SchedulerContext["firing"];
  readonly #isolation: Isolation | undefined;
  readonly #names: readonly string[] | undefined;
  readonly #fire: ReadonlyMap<string, FireSchedule>;
  readonly #options: SchedulerOptions;
  readonly #end = new AbortController();
  /** The rest of plans that were longer than a round, by the key of the schedule. */
  readonly #left = new Map<number, LeftPlan>();
  #stepsTaken = 0;
  readonly stopped: Promise<void>;

  constructor(
    { database, clock, firing, isolation, names }: SchedulerContext,
    fire: Readonly<Record<string, FireSchedule>>,
    options: SchedulerOptions,
  ) {
    this.#database = database;
    this.#clock = clock;
    this.#firing = firing;
    this.#isolation = isolation;
    this.#names = names;
    this.#fire = new Map(Object.entries(fire));
    this.#options = options;
    const { signal } = options;
    const stop = (): void => this.#end.abort();
    signal?.addEventListener("abort", stop, { once: true });
    if (signal?.aborted === true) stop();
    // Also between two waits, while a round is planned and fired.
    const release = database.keepAlive();
    this.stopped = this.#run().finally(() => {
      signal?.removeEventListener("abort", stop);
      release();
    });
  }

  close(): Promise<void> {
    this.#end.abort();
    return this.stopped;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #run(): Promise<void> {
    const { signal } = this.#end;
    for (let failures = 0; !signal.aborted;) {
      try {
        await this.#round(await this.#nextDue());
        failures = 0;
        await this.#database.pause();
      } catch (error) {
        if (signal.aborted || isClosed(error)) return;
        this.#report(error);
        if (isFinal(error)) return;
        const again = this.#clock.now() + backoffMs(failures);
        await sleepUntil(this.#database, this.#clock, again, signal);
        failures += 1;
      }
    }
  }

  /** Sleeps until the earliest instant of all, or until a schedule is changed. */
  #nextDue(): Promise<readonly DueSchedule[]> {
    const kinds = [...this.#fire.keys()];
    return waitUntil(
      this.#database,
      {
        what: "a schedule to be due",
        clock: this.#clock,
        interests: kinds.map((key) => ({ operation: scheduleChanged, key })),
        look: async () => {
          const now = this.#clock.now();
          const names = this.#names;
          const asked = { kinds, names, now, limit: schedulesPerRound };
          const found = await this.#database.read(dueSchedules, asked);
          return found.due.length > 0
            ? { isThere: true, value: found.due }
            : { isThere: false, again: found.earliest };
        },
      },
      { signal: this.#end.signal },
    );
  }

  /**
   * Makes the plans one after the other, so that other work runs in between, and fires them side by
   * side.
   */
  async #round(due: readonly DueSchedule[]): Promise<void> {
    const failed: unknown[] = [];
    const firing: Promise<unknown>[] = [];
    const note = (error: unknown): undefined => {
      failed.push(error);
    };
    for (const each of due) {
      if (this.#end.signal.aborted) break;
      const at = this.#clock.now();
      const plan = await this.#guarded(each, () => this.#planned(each, at)).catch(note);
      if (plan !== undefined) firing.push(this.#fireAll(each, plan, at).catch(note));
    }
    await Promise.all(firing);
    if (failed.length > 0) throw failed[0];
  }

  /**
   * The plan of a schedule: the rest of the previous one, or a new one.
   * @throws HoldfastError `CORRUPT_ROW`, `CRON_INVALID`, `TIME_ZONE_INVALID`
   */
  async #planned(due: DueSchedule, now: number): Promise<MadePlan> {
    const { key, revision, schedule, nextAt } = due;
    if (schedule === undefined) throw unreadable(due);
    const left = this.#left.get(key);
    this.#left.delete(key);
    if (left?.revision === revision && left.fire[0] === nextAt && now - left.madeAt < planMsMax)
      return left;
    const instants = instantsOf(schedule.cadence);
    const search = planDue(instants, { ...schedule, nextAt }, now);
    let step = search.next();
    while (step.done !== true) {
      this.#stepsTaken += 1;
      if (this.#stepsTaken % stepsPerTurn === 0) await this.#database.pause();
      step = search.next();
    }
    return { ...step.value, madeAt: now };
  }

  /** Fires a plan as far as one round goes. */
  async #fireAll(due: DueSchedule, plan: MadePlan, at: number): Promise<void> {
    let seen: SeenFailing = due;
    for (const step of stepsOf(plan)) {
      if (this.#end.signal.aborted) return;
      const current = seen;
      const fire = (): Promise<boolean> => this.#fireOne(current, step, at);
      if ((await this.#guarded(current, fire)) !== true) return;
      // A fired instant ends the failures before it.
      const { nextAt } = current;
      seen = { ...current, failures: 0, nextAt: step.following ?? nextAt };
    }
    const fire = plan.fire.slice(instantsPerRound);
    if (fire.length === 0) return;
    if (this.#left.size >= schedulesLeftMax) this.#left.clear();
    const { key, revision } = due;
    this.#left.set(key, { ...plan, revision, fire, skipped: undefined });
  }

  /**
   * Reports and postpones a failure, so that the other schedules continue; undefined then. Throws
   * only when the postponement fails too.
   */
  async #guarded<T>(seen: SeenFailing, run: () => T | Promise<T>): Promise<T | undefined> {
    try {
      return await run();
    } catch (error) {
      if (this.#end.signal.aborted || isClosed(error)) return undefined;
      if (isFinal(error)) throw error;
      this.#report(error, seen.name);
      await this.#database.write(postponeSchedule, {
        seen,
        code: isHoldfastError(error) ? error.code : "UNKNOWN",
        at: this.#clock.now(),
      });
      return undefined;
    }
  }

  /** True when this scheduler fired it. */
  async #fireOne(seen: SeenFailing, step: FiringStep, at: number): Promise<boolean> {
    const { kind } = seen.name;
    const fire = this.#fire.get(kind);
    if (fire === undefined) return false;
    const input = { ...step, seen, at, fire };
    const outcome = await this.#database.write(this.#firing, input, {
      isolation: this.#isolation,
    });
    if (outcome.kind === "contested" && (await this.#database.read(standsAsSeen, seen)))
      throw changesItself(seen.name);
    if (outcome.kind !== "fired") return false;
    const { instant, skipped } = step;
    this.#inform({ ...seen.name, instant, at, skipped, value: outcome.value });
    return true;
  }

  #inform(
    fired: Omit<FiredInstant, "instant"> & {
      readonly instant: number | undefined;
    },
  ): void {
    const { onFired, onSkipped } = this.#options;
    const { kind, name, skipped, instant } = fired;
    if (skipped !== undefined) this.#call(() => onSkipped?.({ kind, name }, skipped));
    if (instant !== undefined) this.#call(() => onFired?.({ ...fired, instant }));
  }

  #report(error: unknown, schedule?: ScheduleName): void {
    this.#call(() => this.#options.onError?.(error, schedule));
  }

  /** Calls a listener. An error of a listener must not affect the schedules. */
  #call(listener: () => void): void {
    try {
      listener();
    } catch {
      // There is no other place to report it.
    }
  }
}

interface MadePlan extends SchedulePlan {
  readonly madeAt: number;
}

interface LeftPlan extends MadePlan {
  readonly revision: number;
}

type SeenFailing = PostponeInput["seen"];

/** One instant of a plan, or a step that fires none. */
interface FiringStep {
  readonly instant: number | undefined;
  readonly skipped: SkippedInstants | undefined;
  readonly following: number | null;
}

/** The steps of one round for a schedule. */
function stepsOf(plan: SchedulePlan): readonly FiringStep[] {
  const next = plan.next ?? null;
  if (plan.fire.length === 0)
    return [{ instant: undefined, skipped: plan.skipped, following: next }];
  return plan.fire.slice(0, instantsPerRound).map((instant, index) => ({
    instant,
    skipped: index === 0 ? plan.skipped : undefined,
    following: plan.fire[index + 1] ?? next,
  }));
}

function isClosed(error: unknown): boolean {
  return isHoldfastError(error) && error.code === "DATABASE_CLOSED";
}

/** Reported, since it would be retried again and again. */
function changesItself({ kind, name }: ScheduleName): HoldfastError {
  return new HoldfastError(
    "OPERATION_INVALID",
    `The part that fires schedule "${name}" of kind "${kind}" changes or removes that schedule in the same transaction, so neither change could be kept; nothing was written. ` +
      "Change the schedule in a separate transaction, after the instant was fired.",
    { kind, name },
  );
}

function unreadable({ key, name }: DueSchedule): HoldfastError {
  return new HoldfastError(
    "CORRUPT_ROW",
    `Schedule "${name.name}" of kind "${name.kind}" is unreadable; no operation of Holdfast writes such a row. ` +
      "It is retried every minute. Put the schedule again, or delete the row with a database shell.",
    { table: "holdfast_schedule", key: String(key) },
  );
}
