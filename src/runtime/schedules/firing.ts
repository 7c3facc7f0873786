import { isFinal, isHoldfastError } from "../../model/errors.ts";
import {
  instantText,
  runSchedules,
  waitingMax,
  type SkipReason,
} from "../../model/trigger/run-schedule.ts";
import type { SkippedInstants } from "../../model/trigger/schedule-plan.ts";
import type { Interest } from "../../sql/database.ts";
import { executionEnded } from "../../stores/execution/topics.ts";
import {
  findWaiting,
  startDue,
  startWaiting,
  type InstantOutcome,
} from "../../stores/schedule/runs/start.ts";
import { scheduleChanged, type Scheduler } from "../../stores/schedule/schedule-row.ts";
import { runOwnSchedules } from "../../stores/schedule/schedules.ts";
import { waitUntil } from "../../stores/wait.ts";
import { pauseBefore } from "../pauses.ts";
import type { RuntimeContext } from "../runtime-context.ts";
import type { Notice } from "../runtime-event.ts";
import { watchMove } from "../worker/move-watch.ts";

/**
 * Fires the schedules of some names while a worker runs: starts due instants, and waiting
 * instants once no run is in their way. Any number of processes may do so. The transaction
 * decides which of them starts a run.
 */
export class Firing {
  readonly #context: RuntimeContext;
  readonly #names: readonly string[];
  readonly #scheduler: Scheduler;
  readonly #end = new AbortController();
  /** Schedules whose waiting instants could not be started. */
  readonly #failing = new Set<string>();
  readonly #waiting: Promise<void>;
  readonly #stopMoveWatch: () => void;

  constructor(context: RuntimeContext, names: readonly string[]) {
    this.#context = context;
    this.#names = names;
    const { store, scheduling: clock } = context;
    this.#scheduler = runOwnSchedules(
      { ...store, clock },
      { [runSchedules]: (due) => startDue(store, due) },
      {
        onFired: ({ name, instant, value }) => this.#tell(name, instant, value as InstantOutcome),
        onSkipped: ({ name }, skipped) => this.#tellMissed(name, skipped),
        onError: (error, schedule) => this.#tellFailed(error, schedule?.name),
      },
      names,
    );
    this.#waiting = this.#startWaiting();
    // The instants fire in the moved database from now on. The worker reports the move.
    this.#stopMoveWatch = watchMove(context, () => void this.close());
  }

  /** Finishes the starts that are under way. */
  async close(): Promise<void> {
    this.#stopMoveWatch();
    this.#end.abort();
    await Promise.all([this.#scheduler.close(), this.#waiting]);
  }

  async #startWaiting(): Promise<void> {
    const { signal } = this.#end;
    const { clock } = this.#context;
    let failures = 0;
    /** The runs that are in the way. */
    let awaited: readonly string[] = [];
    while (!signal.aborted)
      try {
        const { ready, unfinished } = await this.#nextReady(awaited, signal);
        awaited = unfinished;
        const isStuck = !(await this.#startAll(ready));
        // The instant stays ready, so waiting for it would not wait.
        if (isStuck) await pauseBefore(clock, failures, signal);
        failures = isStuck ? failures + 1 : 0;
      } catch (error) {
        if (signal.aborted || isClosed(error) || isFinal(error)) return;
        this.#tellFailed(error, undefined);
        await pauseBefore(clock, failures, signal);
        failures += 1;
      }
  }

  /** Starts what is ready. A failing schedule does not hold up the others and is reported once. True if none failed. */
  async #startAll(names: readonly string[]): Promise<boolean> {
    const { database, store } = this.#context;
    let haveStarted = true;
    for (const name of names)
      try {
        const started = await database.write(startWaiting(store), { name });
        this.#failing.delete(name);
        if (started !== undefined) this.#tell(name, started.instant, started.outcome);
      } catch (error) {
        if (this.#end.signal.aborted || isClosed(error) || isFinal(error)) throw error;
        if (!this.#failing.has(name)) this.#tellFailed(error, name);
        this.#failing.add(name);
        haveStarted = false;
      }
    return haveStarted;
  }

  /** Resolves when a waiting instant can be started, or when runs other than the awaited ones are in the way. */
  #nextReady(awaited: readonly string[], signal: AbortSignal): Promise<Ready> {
    const { database, store, clock } = this.#context;
    const known = new Set(awaited);
    return waitUntil(
      database,
      {
        what: "what an instant waits for to end",
        clock,
        interests: [
          { operation: scheduleChanged, key: runSchedules },
          ...awaited.map((key): Interest => ({
            operation: executionEnded,
            key,
          })),
        ],
        look: async () => {
          const names = this.#names;
          const found = await database.read(findWaiting(store), { names });
          const ready = found
            .filter((each) => each.unfinished.length === 0)
            .map(({ name }) => name);
          const unfinished = found.flatMap((each) => each.unfinished);
          return ready.length > 0 || !unfinished.every((id) => known.has(id))
            ? { isThere: true, value: { ready, unfinished } }
            : { isThere: false };
        },
      },
      { signal },
    );
  }

  #tell(name: string, instant: number, outcome: InstantOutcome): void {
    if (outcome.kind === "gone") return;
    // A process that only starts runs would not learn otherwise that no worker takes them.
    if (outcome.kind === "started") {
      this.#context.unserved.started(outcome.function);
      this.#context.reports.started(outcome.function);
    }
    const { level, text } = spoken(outcome);
    this.#context.tell({
      level,
      message: `Schedule "${name}" at ${instantText(instant)}: ${text}`,
      details: { schedule: name, instant, ...outcome },
    });
  }

  #tellMissed(name: string, { from, before }: SkippedInstants): void {
    this.#context.tell({
      level: "info",
      message: `Schedule "${name}" skips its instants from ${instantText(from)} to before ${instantText(before)}, because no worker was firing it.`,
      details: { schedule: name, from, before },
    });
  }

  #tellFailed(error: unknown, name: string | undefined): void {
    const { message } = error as Error;
    this.#context.tell({
      level: isFinal(error) ? "error" : "warn",
      message: isFinal(error)
        ? `This process no longer fires schedules. ${message}`
        : name === undefined
          ? `Could not look for due schedules; retrying: ${message}`
          : `Schedule "${name}" could not be fired; retrying: ${message}`,
      details: {
        ...(name !== undefined && { schedule: name }),
        ...(isHoldfastError(error) && { code: error.code }),
      },
    });
  }
}

interface Ready {
  /** Schedules whose first waiting instant may start. */
  readonly ready: readonly string[];
  readonly unfinished: readonly string[];
}

const skipTexts: Readonly<Record<SkipReason, string>> = {
  unfinished:
    'skipped, because a run of the schedule is unfinished. With overlap: "queue" it would start later.',
  full: `skipped, because ${waitingMax} instants already wait. The runs take longer than the time between two instants.`,
  replaced: "skipped, because a later instant is due.",
  taken: "skipped, because another run has the id of its run. Start your own runs under other ids.",
};

function spoken(outcome: Exclude<InstantOutcome, { readonly kind: "gone" }>): {
  readonly level: Notice["level"];
  readonly text: string;
} {
  if (outcome.kind === "started") return { level: "debug", text: `started run ${outcome.run}.` };
  if (outcome.kind === "skipped")
    return {
      level: outcome.reason === "unfinished" ? "info" : "warn",
      text: skipTexts[outcome.reason],
    };
  const asked =
    outcome.cancelled.length > 0 ? ` Asked to cancel: ${outcome.cancelled.join(", ")}.` : "";
  return {
    level: "info",
    text: `waits until the run before it ends.${asked}`,
  };
}

function isClosed(error: unknown): boolean {
  return isHoldfastError(error) && error.code === "DATABASE_CLOSED";
}
