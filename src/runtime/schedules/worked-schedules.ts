import { instantText } from "../../model/trigger/run-schedule.ts";
import { newTerms } from "../../stores/schedule/parts.ts";
import { putRunSchedules, type PutRunSchedule } from "../../stores/schedule/runs/change.ts";
import { findOverdue } from "../../stores/schedule/runs/list.ts";
import type { RuntimeContext } from "../runtime-context.ts";
import { validated } from "../definition/schema.ts";
import { Firing } from "./firing.ts";
import { scheduleConflict, schedulesOf, type ScheduleDefinition } from "./schedule.ts";

/** The delay after which a schedule seems to have no worker: a worker whose attempt fails retries within a minute. */
const patienceMs = 90_000;
/** The delay before workers first look for schedules without a worker, and the pause between looks. */
const lookMs = 2_000;
const againMs = 60_000;

/**
 * The schedules that the workers of this process were given: stores them in the database and
 * fires them. Only workers that were given a schedule fire it. A schedule that was removed from
 * the code therefore starts nothing more. It stays in the database, and every worker warns
 * about it.
 */
export class WorkedSchedules {
  readonly #context: RuntimeContext;
  readonly #given = new Map<string, ScheduleDefinition>();
  readonly #firings: Firing[] = [];
  readonly #told = new Set<string>();
  #isLooking = false;
  #isClosed = false;
  #cancel: () => void = () => undefined;

  constructor(context: RuntimeContext) {
    this.#context = context;
  }

  /**
   * Returns the schedules that no worker here was given before, which belong to this process
   * from now on.
   * @throws HoldfastError `SCHEDULE_CONFLICT`
   */
  claim(given: readonly unknown[]): readonly ScheduleDefinition[] {
    const fresh: ScheduleDefinition[] = [];
    for (const [name, made] of schedulesOf(given)) {
      const before = this.#given.get(name);
      if (before !== undefined && before !== made) throw scheduleConflict(made);
      if (before === undefined) fresh.push(made);
    }
    for (const made of fresh) this.#given.set(made.name, made);
    return fresh;
  }

  release(schedules: readonly ScheduleDefinition[]): void {
    for (const { name } of schedules) this.#given.delete(name);
  }

  /**
   * Creates the schedules, or changes their terms, in one transaction: a call of `work` that
   * fails leaves none of them behind.
   * @throws HoldfastError `INPUT_INVALID`, `NOT_SERIALIZABLE`, `VALUE_TOO_LARGE`
   */
  async put(schedules: readonly ScheduleDefinition[]): Promise<void> {
    const { database, store, tell } = this.#context;
    const inputs = await Promise.all(schedules.map((each) => this.#inputOf(each)));
    if (inputs.length === 0) return;
    const outcomes = await database.write(putRunSchedules(store), {
      schedules: inputs,
    });
    for (const [index, { name, function: started }] of inputs.entries()) {
      const outcome = outcomes[index];
      if (outcome !== "same")
        tell({
          level: "info",
          message: `Schedule "${name}" of "${started}" was ${outcome}.`,
          details: { schedule: name, function: started },
        });
    }
  }

  async #inputOf(given: ScheduleDefinition): Promise<PutRunSchedule> {
    const { clock, store } = this.#context;
    const { name, overlap } = given;
    const { kind: role, name: started, schema } = given.function;
    const what = `The input of schedule "${name}" for ${started}`;
    const input =
      schema === undefined
        ? given.input
        : await validated(what, schema, given.input, (valid) => valid);
    return {
      name,
      role,
      overlap,
      function: started,
      ...store.values.input(input),
      terms: newTerms(given.draft, clock.now()),
    };
  }

  fire(schedules: readonly ScheduleDefinition[]): void {
    if (this.#isClosed) return;
    const names = schedules.map(({ name }) => name);
    if (names.length > 0) this.#firings.push(new Firing(this.#context, names));
    if (!this.#isLooking) this.#lookIn(lookMs);
    this.#isLooking = true;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancel();
    await Promise.all(this.#firings.map((each) => each.close()));
  }

  #lookIn(ms: number): void {
    const { background } = this.#context;
    const at = background.now() + ms;
    this.#cancel = background.wakeAt(at, () => void this.#look());
  }

  async #look(): Promise<void> {
    const { database, store, clock } = this.#context;
    const before = clock.now() - patienceMs;
    try {
      const overdue = await database.read(findOverdue(store), { before });
      for (const { name, due_at: dueAt } of overdue) this.#warn(name, dueAt);
    } catch {
      // Other calls report an unreadable database.
    }
    if (!this.#isClosed) this.#lookIn(againMs);
  }

  /** Warns about each schedule once. */
  #warn(name: string, dueAt: number): void {
    if (this.#given.has(name) || this.#told.has(name)) return;
    this.#told.add(name);
    this.#context.tell({
      level: "warn",
      message:
        `Schedule "${name}" has been due since ${instantText(dueAt)}, but no running worker has it. ` +
        `Pass it to holdfast.work([…]) in some process, or remove it: holdfast.schedules.remove("${name}").`,
      details: { schedule: name, dueAt },
    });
  }
}
