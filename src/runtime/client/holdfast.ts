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
import { answered, questionsOf, type Questions } from "./questions.ts";
import { foundRunOf, runOf, type Run } from "./run-handle.ts";
import { runsOf, type Runs } from "./runs.ts";
import { startOf, startsOf } from "./starts.ts";
import type { HoldfastStats } from "../reports.ts";
import type { RuntimeContext } from "../runtime-context.ts";
import { runSchedulesOf, type RunSchedules } from "../schedules/run-schedules.ts";
import { givenWork, isScheduled, type Worked } from "../schedules/schedule.ts";
import { WorkedSchedules } from "../schedules/worked-schedules.ts";
import type { StorePages } from "./store-pages.ts";
import { isDoneBy } from "../pauses.ts";
import { holdfastClosed, Worker } from "../worker/worker.ts";
import type { WorkerSettings } from "../worker/worker-parts.ts";
import type { InputAnd, StartOf, StartOptions } from "../definition/workflow-context.ts";

export interface WorkOptions {
  /** The most runs that execute at once in this process; waiting runs do not count. Defaults to 100. */
  readonly concurrency?: number;
  /** The version of the deployed code. Runs that do not match it are left to workers of another version. */
  readonly codeVersion?: string;
  /** The time after which other workers take over the runs of a lost machine; defaults to 30 s. */
  readonly lease?: Duration;
  /** The most waiting runs kept in memory. Other runs are replayed when they resume. Defaults to 1,000. */
  readonly hotRunsMax?: number;
  /** The approximate limit on the bytes of recorded values that waiting runs hold together; defaults to 64 MiB. */
  readonly hotBytesMax?: number;
  /** The time for which the live output of runs is kept after their end; defaults to 10 minutes. */
  readonly keepStreams?: Duration;
}

export interface CloseOptions {
  /** The time limit for running code to record its outcome; defaults to 10 s. Unfinished runs are released. */
  readonly timeout?: Duration;
}

/** A database and its runs: starts, executes and finds them. The stores of the database are its properties. */
export interface Holdfast extends StorePages {
  readonly database: Database;
  /**
   * Runs these workflows and activities, or one, in this process until it is closed, and starts
   * the runs of these schedules. Other processes may do the same. A stored schedule with the same
   * settings continues. Different settings replace it.
   * @throws HoldfastError `FUNCTION_CONFLICT`, `SCHEDULE_CONFLICT`, `OPTION_INVALID`, `DATABASE_CLOSED`, `PAYLOAD_CODEC_MISSING`, `PAYLOAD_CODEC_WRONG`; of schedules `INPUT_INVALID`, `NOT_SERIALIZABLE`, `VALUE_TOO_LARGE`
   * @example await holdfast.work(fulfil);
   * @example await holdfast.work([fulfil, charge], { concurrency: 50 });
   * @example await holdfast.work([report, schedule("nightly", { cron: "0 2 * * *" }, report)]);
   */
  work(functions: Worked | readonly Worked[], options?: WorkOptions): Promise<void>;
  /**
   * Starts a run, or finds the run that was started under its id with the same input. The run
   * is durable once this resolves, and a worker of any process executes it. If none does within
   * two seconds, a warning is reported once per function.
   * @throws HoldfastError `EXECUTION_EXISTS`, `INPUT_INVALID`, `NOT_SERIALIZABLE`, `VALUE_TOO_LARGE`, `ID_MALFORMED`, `OPTION_INVALID`
   * @example const run = await holdfast.start(fulfil, order, { id: "order-42" });
   */
  start<In, Out>(
    fn: DurableFunction<In, Out>,
    ...args: InputAnd<In, StartOptions>
  ): Promise<Run<Out>>;
  /**
   * Starts many runs, in order. All drafts are checked first: an error names the index of the
   * draft (`details.index`), and no run is started. Then each run is started on its own. After
   * an error such as `EXECUTION_EXISTS`, repeat the call. More than a hundred drafts are read
   * over several turns of the event loop: do not change the list before this resolves.
   * @example const runs = await holdfast.startMany(fulfil, orders.map((order) => ({ input: order, id: order.id })));
   */
  startMany<In, Out>(
    fn: DurableFunction<In, Out>,
    starts: readonly StartOf<In>[],
  ): Promise<readonly Run<Out>[]>;
  /**
   * Returns a handle of a run that was started earlier, in any process. The first call of the handle
   * checks that the run exists and belongs to this function (`FUNCTION_MISMATCH`).
   */
  get<Out>(fn: DurableFunction<never, Out>, id: string): Run<Out>;
  /**
   * Resolves an external by the token of `ctx.external`. The first answer stays, and the same
   * answer may be given again. A value above the size limit is refused, and the question stays
   * open.
   * @throws HoldfastError `AWAIT_TOKEN_INVALID`, `ANSWER_INVALID`, `RESOLUTION_CONFLICT`, `EXECUTION_NOT_FOUND`, `NOT_SERIALIZABLE`, `VALUE_TOO_LARGE`
   */
  resolve(token: string, value: unknown): Promise<void>;
  /** Lists the open questions of runs, and answers them. */
  readonly questions: Questions;
  /**
   * Returns what this process has started, ended and attempted, by function. The figures of the
   * database are `database.stats()`.
   */
  stats(): HoldfastStats;
  /** Finds runs, and applies one command to many of them. */
  readonly runs: Runs;
  /** Shows, pauses, fires and removes the schedules that were given to `work`. */
  readonly schedules: RunSchedules;
  /**
   * Closes when the process receives SIGTERM or SIGINT, or a signal that you
   * name, and then ends the process with the same signal. A listener of your own
   * therefore receives that signal twice. A second signal ends the process at
   * once, unless it comes within 0.3 s, as from a wrapper such as tsx.
   * Returns a function that stops listening.
   * @throws HoldfastError `DURATION_INVALID`, `OPTION_INVALID`
   * @example holdfast.closeOnSignals({ timeout: "20s" });
   */
  closeOnSignals(
    options?: CloseOptions & { readonly signals?: readonly NodeJS.Signals[] },
  ): () => void;
  /** Lets running code record its outcome, releases all other runs without penalty, and closes the database. */
  close(options?: CloseOptions): Promise<void>;
}

const defaultConcurrency = 100;
const defaultLease: Duration = "30s";
const defaultHotRuns = 1_000;
const defaultHotBytes = 64 * 1024 * 1024;
const defaultKeepStreams: Duration = "10m";
const defaultClose: Duration = "10s";
/** The least time for the last calls to get their answers, even if the close has used its time. */
const lastMs = 1_000;

/** Makes a `Holdfast`, with the stores of the database as further properties. */
export function holdfastOver(
  context: RuntimeContext,
  close: (timeoutMs: number) => Promise<void>,
): Holdfast {
  const opened = new OpenHoldfast(context, close);
  const { pages } = context;
  for (const name of Object.keys(pages) as (keyof StorePages)[])
    Object.defineProperty(opened, name, {
      enumerable: true,
      // Made on first access.
      get: () => pages[name],
    });
  return opened as OpenHoldfast & StorePages;
}

class OpenHoldfast implements Omit<Holdfast, keyof StorePages> {
  readonly database: Database;
  readonly questions: Questions;
  readonly runs: Holdfast["runs"];
  readonly schedules: RunSchedules;
  readonly #context: RuntimeContext;
  readonly #closeDatabase: (timeoutMs: number) => Promise<void>;
  readonly #workers: Worker[] = [];
  /** The functions that were given to workers, by name: known before the workers have started. */
  readonly #functions = new Map<string, Definition>();
  readonly #scheduled: WorkedSchedules;
  #closing: Promise<void> | undefined;

  constructor(context: RuntimeContext, close: (timeoutMs: number) => Promise<void>) {
    this.#context = context;
    this.#closeDatabase = close;
    this.database = context.database;
    this.questions = questionsOf(context);
    this.runs = runsOf(context);
    this.schedules = runSchedulesOf(context);
    this.#scheduled = new WorkedSchedules(context);
  }

  work(functions: Parameters<Holdfast["work"]>[0], options?: WorkOptions): Promise<void> {
    return untilEnd(this.#context, () => this.#work(functions, options));
  }

  async #work(functions: Parameters<Holdfast["work"]>[0], options?: WorkOptions): Promise<void> {
    const settings = settingsOf(options);
    const given = givenWork(functions);
    const byName = definitionsOf(given, isScheduled);
    if (this.#closing !== undefined) throw holdfastClosed();
    for (const [name, made] of byName) {
      const before = this.#functions.get(name);
      if (before !== undefined && before !== made) throw functionConflict(made);
    }
    if (given.length === 0) throw nothingToRun();
    this.#context.store.seal.throwRefusal();
    const schedules = this.#scheduled.claim(given);
    const fresh = [...byName].filter(([name]) => !this.#functions.has(name));
    for (const [name, made] of fresh) this.#functions.set(name, made);
    try {
      await this.#scheduled.put(schedules);
      // A process that only starts runs needs no worker.
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
    // Awaited only if needed: the input is encoded before the caller can change it.
    return this.#begin(draft instanceof Promise ? await draft : draft);
  }

  async #begin<Out>(draft: ExecutionDraft): Promise<Run<Out>> {
    const { function: name } = draft;
    const worker = this.#workers.find(({ functions }) => functions.has(name));
    this.#context.unserved.started(name);
    // Encoded at once, whichever worker executes the run.
    const begun = worker?.startHere(draft);
    const id = begun === undefined ? await this.#create(draft) : await begun;
    return runOf(this.#context, name, id);
  }

  async #create(draft: ExecutionDraft): Promise<string> {
    const { pages, reports } = this.#context;
    const { id, existed } = await pages.executions.create(draft);
    if (!existed) reports.started(draft.function);
    return id;
  }

  get<Out>(fn: DurableFunction<never, Out>, id: string): Run<Out> {
    const { name } = definitionOf(fn, "the function of the run");
    return foundRunOf(this.#context, name, parseExecutionId(id));
  }

  stats(): HoldfastStats {
    return this.#context.reports.stats;
  }

  async resolve(token: string, value: unknown): Promise<void> {
    const { pages, tokens } = this.#context;
    const external = tokens.externalOf(token);
    await answered(this.#context, value, () =>
      pages.executions.resolve(external, { kind: "completed", value }),
    );
  }

  closeOnSignals(
    options?: CloseOptions & { readonly signals?: readonly NodeJS.Signals[] },
  ): () => void {
    const { signals = ["SIGTERM", "SIGINT"], timeout = defaultClose } = optionsOf<
      NonNullable<typeof options>
    >(options, ["signals", "timeout"]);
    // Checked now, not when the process is told to stop.
    durationMs(timeout, "timeout");
    const { background, ending, tell } = this.#context;
    return closeOnSignals(givenList("signals", signals).map(givenSignalName), {
      close: (signal) => {
        ending.by = signal;
        return this.close({ timeout });
      },
      tell: (error) =>
        tell({
          level: "error",
          message: `Closing failed: ${(error as Error).message}`,
          details: {},
        }),
      clock: background,
    });
  }

  close(options?: CloseOptions): Promise<void> {
    const { timeout = defaultClose } = optionsOf<CloseOptions>(options, ["timeout"]);
    const timeoutMs = durationMs(timeout, "timeout");
    this.#context.unserved.close();
    this.#context.parked.close();
    this.#closing ??= this.#close(timeoutMs);
    return this.#closing;
  }

  /** Closes the database; a database that has not answered a worker gets no second wait. */
  async #close(timeoutMs: number): Promise<void> {
    const by = this.#context.clock.now() + timeoutMs;
    const [, ...answers] = await Promise.all([
      this.#scheduled.close(),
      ...this.#workers.map((worker) => worker.close(timeoutMs)),
    ]);
    await isDoneBy(this.#context.background, by, this.#context.output.close());
    const isAnswering = answers.every((isAnswered) => isAnswered);
    const leftMs = by - this.#context.clock.now();
    this.#context.reports.close();
    await this.#closeDatabase(isAnswering ? Math.max(leftMs, lastMs) : 0);
  }
}

/** Returns a signal that a process can catch. @throws HoldfastError `OPTION_INVALID` */
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
    keepStreams = defaultKeepStreams,
  } = optionsOf<WorkOptions>(given, [
    "concurrency",
    "codeVersion",
    "lease",
    "hotRunsMax",
    "hotBytesMax",
    "keepStreams",
  ]);
  return {
    concurrency: checkedCount("concurrency", concurrency, { min: 1 }),
    codeVersion: codeVersion === undefined ? undefined : checkedText("A code version", codeVersion),
    leaseMs: leaseOf(lease),
    hotRunsMax: checkedCount("hotRunsMax", hotRunsMax),
    hotBytesMax: checkedCount("hotBytesMax", hotBytesMax),
    keepStreamsMs: durationMs(keepStreams, "keepStreams"),
  };
}

function nothingToRun(): HoldfastError {
  return new HoldfastError(
    "OPTION_INVALID",
    "work() received an empty list, so there is nothing to run. Pass at least one workflow, activity or schedule.",
    { option: "functions" },
  );
}

function leaseOf(lease: Duration): number {
  const ms = durationMs(lease, "lease");
  if (ms >= 1_000) return ms;
  throw new HoldfastError(
    "OPTION_INVALID",
    "A lease must last at least one second, because it is renewed every third of that time.",
    { option: "lease" },
  );
}
