import { constants } from "node:os";
import { HoldfastError } from "../../model/errors.ts";
import { parseExecutionId } from "../../model/ids/execution-id.ts";
import {
  checkedCount,
  checkedText,
  givenInvalid,
  givenList,
  optionsOf,
} from "../../model/shape.ts";
import { durationMs, type Duration } from "../../model/time/durations.ts";
import type { Database } from "../../sql/database.ts";
import type { ExecutionDraft } from "../../stores/execution/log/create.ts";
import {
  definitionOf,
  definitionsOf,
  functionConflict,
  type Definition,
  type DurableFunction,
} from "../definition/definitions.ts";
import { untilEnd } from "./ending.ts";
import { closeOnSignals } from "./close-on-signals.ts";
import { foundRunOf, runOf, type Run } from "./run-handle.ts";
import { runsOf, type Runs } from "./runs.ts";
import { startOf, startsOf } from "./starts.ts";
import type { RuntimeContext } from "../runtime-context.ts";
import { runSchedulesOf, type RunSchedules } from "../schedules/run-schedules.ts";
import { isScheduled, type ScheduledFunction } from "../schedules/schedule.ts";
import { WorkedSchedules } from "../schedules/worked-schedules.ts";
import type { StorePages } from "./store-pages.ts";
import { holdfastClosed, Worker } from "../worker/worker.ts";
import type { WorkerSettings } from "../worker/worker-parts.ts";
import type { InputAnd, StartOf, StartOptions } from "../definition/workflow-context.ts";

export interface WorkOptions {
  /** How many runs go on at once in this process; those that wait do not count. Defaults to 100. */
  readonly concurrency?: number;
  /** Names the code that is deployed: runs that do not fit it are left to workers of another version. */
  readonly codeVersion?: string;
  /** How long after this machine was lost another may take over its runs; defaults to 30 s. */
  readonly lease?: Duration;
  /** How many runs that wait are kept in memory; others are replayed when they go on. Defaults to 1,000. */
  readonly hotRunsMax?: number;
  /** About how many bytes of recorded values those may hold together; defaults to 64 MiB. */
  readonly hotBytesMax?: number;
}

export interface CloseOptions {
  /** How long what runs may take to be recorded; defaults to 10 s. What is not done by then is given back. */
  readonly timeout?: Duration;
}

/** A database with the runs in it: starts them, works on them, and finds them. The stores of the same database are beside them. */
export interface Holdfast extends StorePages {
  readonly database: Database;
  /**
   * Runs these workflows and activities in this process, until it is closed,
   * and starts what these schedules say. Other processes may do the same. A
   * schedule that exists with the same terms goes on as it is; with others it
   * is replaced.
   * @throws HoldfastError `FUNCTION_CONFLICT`, `SCHEDULE_CONFLICT`, `OPTION_INVALID`, `DATABASE_CLOSED`; of schedules `INPUT_INVALID`, `NOT_SERIALIZABLE`, `VALUE_TOO_LARGE`
   * @example await holdfast.work([fulfil, charge], { concurrency: 50 });
   * @example await holdfast.work([report, schedule("nightly", { cron: "0 2 * * *" }, report)]);
   */
  work(
    functions: readonly (DurableFunction<never, unknown> | ScheduledFunction)[],
    options?: WorkOptions,
  ): Promise<void>;
  /**
   * Starts a run, or finds the one that was started under its id with the same
   * input. Durable once it resolves; a worker of any process runs it. If none
   * does within two seconds, that is warned about once for each function.
   * @throws HoldfastError `EXECUTION_EXISTS`, `INPUT_INVALID`, `NOT_SERIALIZABLE`, `VALUE_TOO_LARGE`, `ID_MALFORMED`, `OPTION_INVALID`
   * @example const run = await holdfast.start(fulfil, order, { id: "order-42" });
   */
  start<In, Out>(
    fn: DurableFunction<In, Out>,
    ...args: InputAnd<In, StartOptions>
  ): Promise<Run<Out>>;
  /**
   * The same for many at once, in order. All are checked first: what is wrong
   * with one is told with its place (`details.index`), and none is started. Then
   * each is started on its own: repeat the call after an error such as
   * `EXECUTION_EXISTS`. Beyond a hundred they are read over several turns of
   * the event loop: change nothing of the list before this resolves.
   * @example const runs = await holdfast.startMany(fulfil, orders.map((order) => ({ input: order, id: order.id })));
   */
  startMany<In, Out>(
    fn: DurableFunction<In, Out>,
    starts: readonly StartOf<In>[],
  ): Promise<readonly Run<Out>[]>;
  /**
   * A run that was started before, here or elsewhere. Whether it exists, and is
   * one of this function, is found out when it is first asked: `FUNCTION_MISMATCH`.
   */
  get<Out>(fn: DurableFunction<never, Out>, id: string): Run<Out>;
  /**
   * Resolves what `ctx.external` gave a token for; the first answer stays, the
   * same again is fine.
   * @throws HoldfastError `AWAIT_TOKEN_INVALID`, `RESOLUTION_CONFLICT`, `EXECUTION_NOT_FOUND`
   */
  resolve(token: string, value: unknown): Promise<void>;
  /** Finds runs, and commands many at once. */
  readonly runs: Runs;
  /** Shows, pauses, fires and removes the schedules that were given to `work`. */
  readonly schedules: RunSchedules;
  /**
   * Closes when the process is told to stop, and then lets it end: for
   * SIGTERM and SIGINT, or those that are named. The process then sends itself
   * the same signal again, which ends it, or is heard a second time by a
   * listener of your own. Returns the way to undo it.
   * @throws HoldfastError `DURATION_INVALID`, `OPTION_INVALID`
   * @example holdfast.closeOnSignals({ timeout: "20s" });
   */
  closeOnSignals(
    options?: CloseOptions & { readonly signals?: readonly NodeJS.Signals[] },
  ): () => void;
  /** Lets what runs be recorded, gives the rest back without penalty, and closes the database. */
  close(options?: CloseOptions): Promise<void>;
}

const defaultConcurrency = 100;
const defaultLease: Duration = "30s";
const defaultHotRuns = 1_000;
const defaultHotBytes = 64 * 1024 * 1024;
const defaultClose: Duration = "10s";
/** What the last calls have to be answered when there is no time to close. */
const lastMs = 1_000;

/** The stores of the database are its properties too. */
export function holdfastOver(
  context: RuntimeContext,
  close: (timeoutMs: number) => Promise<void>,
): Holdfast {
  const opened = new OpenHoldfast(context, close);
  const { pages } = context;
  for (const name of Object.keys(pages) as (keyof StorePages)[])
    Object.defineProperty(opened, name, {
      enumerable: true,
      // Made when it is first asked for, and then the same.
      get: () => pages[name],
    });
  return opened as OpenHoldfast & StorePages;
}

class OpenHoldfast implements Omit<Holdfast, keyof StorePages> {
  readonly database: Database;
  readonly runs: Holdfast["runs"];
  readonly schedules: RunSchedules;
  readonly #context: RuntimeContext;
  readonly #closeDatabase: (timeoutMs: number) => Promise<void>;
  readonly #workers: Worker[] = [];
  /** What was given to workers, by name: known before they have started. */
  readonly #functions = new Map<string, Definition>();
  readonly #scheduled: WorkedSchedules;
  #closing: Promise<void> | undefined;

  constructor(context: RuntimeContext, close: (timeoutMs: number) => Promise<void>) {
    this.#context = context;
    this.#closeDatabase = close;
    this.database = context.database;
    this.runs = runsOf(context);
    this.schedules = runSchedulesOf(context);
    this.#scheduled = new WorkedSchedules(context);
  }

  work(functions: Parameters<Holdfast["work"]>[0], options?: WorkOptions): Promise<void> {
    return untilEnd(this.#context, () => this.#work(functions, options));
  }

  async #work(functions: Parameters<Holdfast["work"]>[0], options?: WorkOptions): Promise<void> {
    const settings = settingsOf(options);
    const given = givenList("functions", functions);
    const byName = definitionsOf(given, isScheduled);
    if (this.#closing !== undefined) throw holdfastClosed();
    for (const [name, made] of byName) {
      const before = this.#functions.get(name);
      if (before !== undefined && before !== made) throw functionConflict(made);
    }
    if (given.length === 0) throw nothingToRun();
    const schedules = this.#scheduled.claim(given);
    const fresh = [...byName].filter(([name]) => !this.#functions.has(name));
    for (const [name, made] of fresh) this.#functions.set(name, made);
    try {
      await this.#scheduled.put(schedules);
      // What only starts runs needs nobody to run them here.
      if (byName.size > 0) await this.#startWorker(byName, settings);
    } catch (error) {
      this.#scheduled.release(schedules);
      for (const [name] of fresh) this.#functions.delete(name);
      throw error;
    }
    this.#context.unserved.serve(byName.keys());
    this.#scheduled.fire(schedules);
  }

  async #startWorker(
    byName: ReadonlyMap<string, Definition>,
    settings: WorkerSettings,
  ): Promise<void> {
    if (this.#closing !== undefined) throw holdfastClosed();
    const worker = new Worker(this.#context, byName, settings);
    this.#workers.push(worker);
    try {
      await worker.start();
    } catch (error) {
      this.#workers.splice(this.#workers.indexOf(worker), 1);
      await worker.close(0);
      throw error;
    }
  }

  start<In, Out>(
    fn: DurableFunction<In, Out>,
    ...[input, options]: InputAnd<In, StartOptions>
  ): Promise<Run<Out>> {
    return untilEnd(this.#context, () => this.#start(fn, input, options));
  }

  async startMany<In, Out>(
    fn: DurableFunction<In, Out>,
    starts: readonly StartOf<In>[],
  ): Promise<readonly Run<Out>[]> {
    return untilEnd(this.#context, async () => {
      const definition = definitionOf(fn, "the function to start");
      const drafts = await startsOf(this.#context, definition, starts);
      return Promise.all(drafts.map((draft) => this.#begin<Out>(draft)));
    });
  }

  async #start<Out>(
    fn: unknown,
    input: unknown,
    options: StartOptions | undefined,
  ): Promise<Run<Out>> {
    const definition = definitionOf(fn, "the function to start");
    const draft = startOf(definition, input, options);
    // Not awaited without need: what is given is encoded before the caller can change it.
    return this.#begin(draft instanceof Promise ? await draft : draft);
  }

  async #begin<Out>(draft: ExecutionDraft): Promise<Run<Out>> {
    const { function: name } = draft;
    const worker = this.#workers.find(({ functions }) => functions.has(name));
    this.#context.unserved.started(name);
    // Encoded in this moment, whoever is to run it.
    const begun = worker?.startHere(draft);
    const id =
      begun === undefined ? (await this.#context.pages.executions.create(draft)).id : await begun;
    return runOf(this.#context, name, id);
  }

  get<Out>(fn: DurableFunction<never, Out>, id: string): Run<Out> {
    const { name } = definitionOf(fn, "the function of the run");
    return foundRunOf(this.#context, name, parseExecutionId(id));
  }

  async resolve(token: string, value: unknown): Promise<void> {
    const { pages, store, tokens } = this.#context;
    const external = tokens.externalOf(token);
    // What cannot be stored is refused with its path from here, not from the result around it.
    store.values.value(value);
    await untilEnd(this.#context, () =>
      pages.executions.resolve(external, { kind: "completed", value }),
    );
  }

  closeOnSignals(
    options?: CloseOptions & { readonly signals?: readonly NodeJS.Signals[] },
  ): () => void {
    const { signals = ["SIGTERM", "SIGINT"], timeout = defaultClose } = optionsOf<
      NonNullable<typeof options>
    >(options, ["signals", "timeout"]);
    // Said now, not when the process is told to stop.
    durationMs(timeout, "timeout");
    return closeOnSignals(
      givenList("signals", signals).map(givenSignalName),
      (signal) => {
        this.#context.ending.by = signal;
        return this.close({ timeout });
      },
      (error) =>
        this.#context.tell({
          level: "error",
          message: `Closing failed: ${(error as Error).message}`,
          details: {},
        }),
    );
  }

  close(options?: CloseOptions): Promise<void> {
    const { timeout = defaultClose } = optionsOf<CloseOptions>(options, ["timeout"]);
    const timeoutMs = durationMs(timeout, "timeout");
    this.#context.unserved.close();
    this.#context.parked.close();
    this.#closing ??= this.#close(timeoutMs);
    return this.#closing;
  }

  /** A database that has not answered a worker until the end is not waited for once more. */
  async #close(timeoutMs: number): Promise<void> {
    const by = this.#context.clock.now() + timeoutMs;
    const [, ...answers] = await Promise.all([
      this.#scheduled.close(),
      ...this.#workers.map((worker) => worker.close(timeoutMs)),
    ]);
    const isAnswering = answers.every((isAnswered) => isAnswered);
    const leftMs = by - this.#context.clock.now();
    await this.#closeDatabase(isAnswering ? Math.max(leftMs, lastMs) : 0);
  }
}

/** One that a process can hear. @throws HoldfastError `OPTION_INVALID` */
function givenSignalName(given: NodeJS.Signals): NodeJS.Signals {
  const isDeaf = given === "SIGKILL" || given === "SIGSTOP";
  if (!isDeaf && Object.keys(constants.signals).includes(given)) return given;
  throw givenInvalid("signals", "names such as SIGTERM, of those that can be caught", given);
}

function settingsOf(given: WorkOptions | undefined): WorkerSettings {
  const {
    concurrency = defaultConcurrency,
    codeVersion,
    lease = defaultLease,
    hotRunsMax = defaultHotRuns,
    hotBytesMax = defaultHotBytes,
  } = optionsOf<WorkOptions>(given, [
    "concurrency",
    "codeVersion",
    "lease",
    "hotRunsMax",
    "hotBytesMax",
  ]);
  return {
    concurrency: checkedCount("concurrency", concurrency, { min: 1 }),
    codeVersion: codeVersion === undefined ? undefined : checkedText("A code version", codeVersion),
    leaseMs: leaseOf(lease),
    hotRunsMax: checkedCount("hotRunsMax", hotRunsMax),
    hotBytesMax: checkedCount("hotBytesMax", hotBytesMax),
  };
}

function nothingToRun(): HoldfastError {
  return new HoldfastError(
    "OPTION_INVALID",
    "work() was given an empty list, so there is nothing to run. Give it at least one workflow, activity or schedule.",
    { option: "functions" },
  );
}

function leaseOf(lease: Duration): number {
  const ms = durationMs(lease, "lease");
  if (ms >= 1_000) return ms;
  throw new HoldfastError(
    "OPTION_INVALID",
    "A lease lasts at least a second, since it is renewed at each third of it.",
    { option: "lease" },
  );
}
