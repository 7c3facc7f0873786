import { machineTime } from "../host/clock.ts";
import { seededEntropy } from "../model/entropy.ts";
import { idSource, type IdSource } from "../model/ids/id-source.ts";
import {
  checkedCount,
  checkedInstant,
  givenFlag,
  givenFunction,
  givenInvalid,
  givenSignal,
  optionsOf,
} from "../model/shape.ts";
import { durationMs, type Duration } from "../model/time/durations.ts";
import { openSqlite } from "../backends/sqlite/open.ts";
import {
  definitionsOf,
  type Definition,
  type DurableFunction,
} from "../runtime/definition/definitions.ts";
import type { CloseOptions, Holdfast, WorkOptions } from "../runtime/client/holdfast.ts";
import type { Run } from "../runtime/client/run-handle.ts";
import type { RuntimeEvent } from "../runtime/runtime-event.ts";
import type { LiveOutput, StreamOptions } from "../runtime/stream/live-output.ts";
import { givenWork, isScheduled, type Worked } from "../runtime/schedules/schedule.ts";
import type { InputAnd, StartOptions } from "../runtime/definition/workflow-context.ts";
import type { WaitOptions } from "../sql/database.ts";
import { countRecorded } from "../stores/execution/read/recorded.ts";
import { isFake, onHanging } from "./fakes.ts";
import { overlaid } from "./overlaid.ts";
import { SimulatedProcess, type TestMachine } from "./simulated-process.ts";
import { endless, waitsForTime, whyStuck } from "./stuck.ts";
import { leaseMs, TestClock } from "./test-clock.ts";
import { TimeSkipping } from "./time-skipping.ts";
import { Traffic } from "./traffic.ts";

export interface TestOptions {
  /**
   * Moves time automatically while the test awaits a result or live output. Defaults to true; with
   * false, only `skip` and `skipTo` move it.
   */
  readonly autoSkip?: boolean;
  /** The time at which the test begins. Defaults to the machine's time. */
  readonly now?: Date | number;
  /** Seed of the ids and of the jitter of retries. Defaults to 1. */
  readonly seed?: number;
  /**
   * Options of the worker: everything that `holdfast.work` takes except the lease, which no other
   * worker waits for.
   */
  readonly work?: Omit<WorkOptions, "lease">;
  /**
   * Receives the events of the runtime and of `ctx.log`. By default, warnings and errors become
   * process warnings, except failures that the results of runs show.
   */
  readonly onEvent?: (event: RuntimeEvent) => void;
}

const optionNames = [
  "autoSkip",
  "now",
  "seed",
  "work",
  "onEvent",
] as const satisfies readonly (keyof TestOptions)[];

/**
 * A Holdfast for tests: in memory, with a worker, on its own clock. While a test awaits a result
 * and no code runs, time jumps to the next instant that something waits for, so a sleep of 30 days
 * takes a moment.
 */
export interface TestHoldfast extends Holdfast {
  /**
   * Starts a run and waits for its result.
   * @throws what `start` and `result` throw, and HoldfastError `RUN_STUCK` when the result cannot
   * come. Then nothing runs, and the run waits for something that no passing of time brings, or it
   * never ends. The message says which.
   * @example expect(await holdfast.run(order, { id: "o-1" })).toEqual({ receipt: "r-1" });
   */
  run<In, Out>(fn: DurableFunction<In, Out>, ...args: InputAnd<In, StartOptions>): Promise<Out>;
  /** The current time of this test's runs. */
  now(): Date;
  /**
   * Moves time forward. Work that comes due on the way happens at its own instant, and has happened
   * when the promise resolves. Time stops while the body of a step or activity runs, for at most
   * three seconds of real time per body.
   * @throws HoldfastError `DURATION_INVALID`
   * @example await holdfast.skip("2 days");
   */
  skip(time: Duration): Promise<void>;
  /**
   * Moves time forward to an instant. An instant in the past changes nothing.
   * @throws HoldfastError `OPTION_INVALID`
   */
  skipTo(instant: Date | number): Promise<void>;
  /**
   * Resolves once nothing runs: every open run waits for an instant, a message or the test. Moves
   * no time.
   */
  idle(): Promise<void>;
  /**
   * Kills the worker as a crash of its process would, and starts another one on the same database.
   * Nothing that the killed worker does is recorded any more. The new worker takes over its runs
   * and replays them.
   */
  crash(): Promise<void>;
  /**
   * Crashes the worker as soon as this many further events are recorded, before the worker learns
   * of the last one. Events of all runs count, starts included.
   * @throws HoldfastError `OPTION_INVALID`
   * @example
   * holdfast.crashAfter(3);
   * expect(await holdfast.run(order, { id: "o-1" })).toEqual({ receipt: "r-1" });
   */
  crashAfter(events: number): void;
  /** Stops the worker and discards the database. */
  close(options?: CloseOptions): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Opens a Holdfast for a test, with a worker that runs these functions. Where a function and its
 * fake are both given, the fake runs. Schedules start runs at their instants when the test moves
 * time; time never moves by itself for them.
 *
 * @throws HoldfastError `FUNCTION_CONFLICT`, `SCHEDULE_CONFLICT`, `OPTION_INVALID`
 * @example
 * const holdfast = await testHoldfast([order, fake(charge, { returns: { receipt: "r-1" } })]);
 * expect(await holdfast.run(order, { id: "o-1" })).toEqual({ receipt: "r-1" });
 * await holdfast.close();
 */
export async function testHoldfast(functions: Given, options?: TestOptions): Promise<TestHoldfast> {
  const {
    autoSkip = true,
    now,
    seed = 1,
    work,
    onEvent,
  } = optionsOf<TestOptions>(options, optionNames);
  givenFlag("autoSkip", autoSkip);
  givenFunction("onEvent", onEvent);
  const served = withoutFaked(givenWork(functions));
  definitionsOf(served, isScheduled);
  const startInstant = now === undefined ? machineTime() : instantOf("now", now);
  const entropy = seededEntropy(seed);
  const clock = new TestClock(startInstant);
  const traffic = new Traffic();
  const time = clock.timers("process");
  const database = await openSqlite(":memory:", { clock: time });
  const machine: TestMachine = {
    database: traffic.over(database),
    clock,
    options: { entropy },
    onEvent,
    killed: new Set(),
  };
  const opened = new OpenTest(machine, traffic, idSource({ clock: time, entropy }), autoSkip);
  try {
    return await opened.open(served, work);
  } catch (error) {
    await opened.close();
    throw error;
  }
}

class OpenTest {
  readonly #machine: TestMachine;
  readonly #traffic: Traffic;
  readonly #ids: IdSource;
  readonly #isAutomatic: boolean;
  readonly #skipping: TimeSkipping;
  readonly #works: (readonly [functions: readonly Worked[], options: WorkOptions])[] = [];
  readonly #stops = new Set<() => void>();
  #client: SimulatedProcess | undefined;
  #worker: SimulatedProcess | undefined;
  /** The number of recorded events at which the worker is killed. */
  #crashAt: Promise<number> | undefined;
  #crashing: Promise<void> = Promise.resolve();
  #closing: Promise<void> | undefined;

  constructor(machine: TestMachine, traffic: Traffic, ids: IdSource, isAutomatic: boolean) {
    this.#machine = machine;
    this.#traffic = traffic;
    this.#ids = ids;
    this.#isAutomatic = isAutomatic;
    this.#skipping = new TimeSkipping({
      clock: machine.clock,
      traffic,
      running: () => this.#worker ?? this.#theClient,
      versionOf: async (id) => (await this.#theClient.holdfast.executions.get(id)).nextVersion,
      waitsForTime: (id) => waitsForTime(this.#theClient.context, id),
      whyStuck: (id) => whyStuck(this.#theClient.context, this.#definitions(), id),
      endless: (id, instants) => endless(id, instants, machine.clock.now()),
    });
  }

  get #theClient(): SimulatedProcess {
    if (this.#client === undefined) throw new Error("It is not open.");
    return this.#client;
  }

  async open(functions: Given, work: WorkOptions | undefined): Promise<TestHoldfast> {
    this.#client = await this.#process({ keepsAlive: true });
    this.#worker = await this.#newWorker();
    await this.#work(functions, work);
    return overlaid(this.#client.holdfast, this.#members()) as unknown as TestHoldfast;
  }

  /**
   * The worker does not keep the process alive. A test that failed before it closed must not block
   * its runner, so only promises that the test itself awaits do.
   */
  #newWorker(): Promise<SimulatedProcess> {
    return this.#process({ keepsAlive: false });
  }

  #process(how: { readonly keepsAlive: boolean }): Promise<SimulatedProcess> {
    const owner = this.#ids.nextId("Own");
    return SimulatedProcess.start(this.#machine, owner, {
      ...how,
      // The count starts at the call of `crashAfter`, not when the database answers.
      beforeWrite: () => this.#crashAt,
      onWrite: () => this.#written(),
    });
  }

  #members(): Partial<TestHoldfast> {
    const { clock } = this.#machine;
    const { holdfast } = this.#theClient;
    const close = (): Promise<void> => this.close();
    return {
      work: (functions, options) => this.#work(functions, options),
      start: async (fn, ...args) => this.#handle(await holdfast.start(fn, ...args)),
      startMany: async (fn, starts) =>
        (await holdfast.startMany(fn, starts)).map((run) => this.#handle(run)),
      get: (fn, id) => this.#handle(holdfast.get(fn, id)),
      schedules: overlaid(holdfast.schedules, {
        fire: async (...how: Parameters<Holdfast["schedules"]["fire"]>) =>
          this.#handle(await holdfast.schedules.fire(...how)),
      }),
      run: async (fn, ...args) => this.#handle(await holdfast.start(fn, ...args)).result(),
      now: () => new Date(clock.now()),
      skip: async (time) =>
        this.#skipping.moveTo(clock.now() + durationMs(time, "the time to skip")),
      skipTo: async (instant) =>
        this.#skipping.moveTo(instantOf("the instant to skip to", instant)),
      idle: () => this.#skipping.idle(),
      crash: () => this.#crash(),
      crashAfter: (events) => this.#crashAfter(events),
      close,
      [Symbol.asyncDispose]: close,
    };
  }

  async #work(functions: Given, options: WorkOptions | undefined): Promise<void> {
    const worker = this.#worker;
    const served = withoutFaked(givenWork(functions));
    const settings = { lease: leaseMs, ...optionsOf<WorkOptions>(options) };
    // A test may start without functions and add them later.
    if (served.length > 0 || this.#works.length > 0) await worker?.holdfast.work(served, settings);
    if (served.length > 0) this.#works.push([served, settings]);
    for (const each of served)
      this.#stops.add(onHanging(each, (key) => this.#worker?.bodies.waits(key)));
  }

  #definitions(): ReadonlyMap<string, Definition> {
    return definitionsOf(
      this.#works.flatMap(([functions]) => functions),
      isScheduled,
    );
  }

  /** A handle whose `result` and `stream` move time. */
  #handle<Out>(run: Run<Out>): Run<Out> {
    return overlaid(run, {
      result: (options?: WaitOptions) => this.#result(run, options),
      stream: (options?: StreamOptions) => this.#stream(run, options),
      fork: async (...how: Parameters<Run<Out>["fork"]>) => this.#handle(await run.fork(...how)),
      retry: async (...how: Parameters<Run<Out>["retry"]>) => this.#handle(await run.retry(...how)),
    });
  }

  async #result<Out>(run: Run<Out>, options: WaitOptions | undefined): Promise<Out> {
    if (!this.#isAutomatic) return run.result(options);
    const given = optionsOf<WaitOptions>(options);
    givenSignal(given.signal);
    return this.#skipping.during(run.id, (over) =>
      run.result({
        ...given,
        signal: given.signal ? AbortSignal.any([given.signal, over]) : over,
      }),
    );
  }

  #stream(run: Run<unknown>, options: StreamOptions | undefined): AsyncIterable<LiveOutput> {
    const outputs = run.stream(options);
    if (!this.#isAutomatic) return outputs;
    const open = (over: AbortSignal): AsyncIterable<LiveOutput> => {
      const signal = options?.signal ? AbortSignal.any([options.signal, over]) : over;
      return run.stream({ ...options, signal });
    };
    return { [Symbol.asyncIterator]: () => this.#skipping.each(run.id, open) };
  }

  #crash(): Promise<void> {
    this.#worker?.kill();
    // Crashes run one after the other, since each needs the new worker in order to kill it.
    this.#crashing = this.#traffic.during(async () => {
      await this.#crashing;
      this.#worker?.kill();
      if (this.#closing !== undefined) return;
      const worker = await this.#newWorker();
      this.#worker = worker;
      for (const how of this.#works) await worker.holdfast.work(...how);
    });
    return this.#crashing;
  }

  #crashAfter(events: number): void {
    checkedCount("events", events, { min: 1 });
    this.#crashAt = this.#recorded().then((before) => before + events);
    // Code that awaits the promise gets the error. Without a database there is nothing to kill.
    this.#crashAt.catch(() => undefined);
  }

  #recorded(): Promise<number> {
    const { database } = this.#machine;
    return database.read(countRecorded, undefined);
  }

  /** Runs after each write, before the process receives the answer. */
  async #written(): Promise<void> {
    const crashAt = this.#crashAt;
    if (crashAt === undefined || (await this.#recorded()) < (await crashAt)) return;
    if (this.#crashAt !== crashAt) return;
    this.#crashAt = undefined;
    // Not awaited: the next worker may need what this call holds.
    void this.#crash().catch(() => undefined);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    for (const stop of this.#stops) stop();
    await this.#crashing.catch(() => undefined);
    await this.#worker?.holdfast.close({ timeout: 0 });
    await this.#client?.holdfast.close({ timeout: 0 });
    await this.#machine.database.close();
  }
}

/** Drops functions whose fake was given as well. */
function withoutFaked(functions: readonly Worked[]): readonly Worked[] {
  const faked = new Set(functions.filter(isFake).map(({ name }) => name));
  return functions.filter(
    (each) =>
      isFake(each) || isScheduled(each) || !faked.has((each as Partial<Worked>)?.name ?? ""),
  );
}

type Given = Parameters<Holdfast["work"]>[0];

function instantOf(what: string, instant: Date | number): number {
  if (typeof instant !== "number" && !(instant instanceof Date))
    throw givenInvalid(what, "a Date or milliseconds since 1970", instant);
  return checkedInstant(what, Number(instant));
}
