import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { monotonicMs, sleep } from "../../host/timers.ts";
import { HoldfastError } from "../../model/errors.ts";
import { openHoldfast } from "../../open/open-holdfast.ts";
import type { Holdfast } from "../../runtime/client/holdfast.ts";
import type { CliHost } from "../host.ts";
import { showRuns, type LiveRuns } from "../live/live-runs.ts";
import type { RunRow } from "../live/run-row.ts";
import type { Screen } from "../live/screen.ts";
import { spokenDuration } from "../../model/time/spoken.ts";
import { DemoWorker } from "./demo-workers.ts";
import { orderFunctions, orderSteps, type StepTold } from "./orders.ts";
import { countLines, countsOf, isProven, sideEffectsIn, stepOfOrder } from "./report.ts";
import { thingsToTry } from "./things-to-try.ts";

export interface DemoOptions {
  readonly orders: number;
  /** The length of a step in milliseconds. */
  readonly paceMs: number;
}

/** The outcome of the demo: `held` if every promise was seen to hold. */
export type DemoOutcome = "held" | "broken" | "stopped";

/**
 * Runs orders on two worker processes with one SQLite file. Kills one of them
 * halfway, and counts the side effects of each step at the end. The folder
 * stays after a complete demo, and is removed otherwise.
 */
export async function runDemo(
  screen: Screen,
  host: Pick<CliHost, "stop" | "timeZone">,
  options: DemoOptions,
): Promise<DemoOutcome> {
  const folder = temporaryFolder();
  const remove = (): void => rmSync(folder, { recursive: true, force: true });
  // Also when a second Ctrl-C ends this process at once.
  process.once("exit", remove);
  const demo = new Demo(screen, host, options, folder);
  try {
    const outcome = await demo.run();
    process.off("exit", remove);
    return outcome;
  } catch (error) {
    await demo.end();
    screen.close({ isErased: true });
    remove();
    process.off("exit", remove);
    if (!host.stop.aborted) throw error;
    screen.say("Stopped. The worker processes have ended, and the files are removed.");
    return "stopped";
  }
}

/** @throws HoldfastError `FILE_NOT_WRITTEN` */
function temporaryFolder(): string {
  const place = tmpdir();
  try {
    return mkdtempSync(path.join(place, "holdfast-demo-"));
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw new HoldfastError(
      "FILE_NOT_WRITTEN",
      `The demo could not make a folder in ${place}: ${code ?? message}. Name a writable one: TMPDIR=. npx holdfast demo`,
      { folder: place },
      { cause: error },
    );
  }
}

class Demo {
  readonly screen: Screen;
  readonly #stop: AbortSignal;
  readonly #timeZone: string;
  readonly #options: DemoOptions;
  readonly #database: string;
  readonly #file: string;
  readonly #workers: DemoWorker[] = [];
  readonly #listeners = new Set<(worker: DemoWorker, told: StepTold) => void>();
  /** The running step of each order, which the database does not know: it records only finished steps. */
  readonly #doing = new Map<string, string>();
  #holdfast: Holdfast | undefined;
  /** Only on a terminal. */
  #live: LiveRuns | undefined;

  constructor(
    screen: Screen,
    { stop, timeZone }: Pick<CliHost, "stop" | "timeZone">,
    options: DemoOptions,
    folder: string,
  ) {
    this.screen = screen;
    this.#stop = stop;
    this.#timeZone = timeZone;
    this.#options = options;
    this.#database = path.join(folder, "demo.db");
    this.#file = path.join(folder, "side-effects.jsonl");
  }

  async run(): Promise<DemoOutcome> {
    const { screen } = this;
    const { orders } = this.#options;
    const startedMs = monotonicMs();
    screen.say(
      `${screen.style("bold", "Holdfast demo")}: ${orders} orders in one SQLite file, two worker processes. One of them will be killed.\n`,
    );
    const holdfast = await openHoldfast(this.#database, {
      onEvent: () => undefined,
    });
    this.#holdfast = holdfast;
    // Without a terminal each step is printed as it starts.
    if (screen.isLive) this.#live = this.#show(holdfast);
    await this.#startWorkers();
    const killed = this.#killInTheMiddle();
    killed.catch(() => undefined);
    const { results } = await this.#startOrders(holdfast);
    await Promise.race([results, untilAborted(this.#stop)]);
    const order = await Promise.race([killed, results.then(() => this.#middle)]);
    const recordedAt = await recordsOf(holdfast, orders);
    await this.end();
    screen.close();
    return this.#report(recordedAt, order, monotonicMs() - startedMs);
  }

  #show(holdfast: Holdfast): LiveRuns {
    return showRuns(holdfast, this.screen, {
      timeZone: this.#timeZone,
      rowsMax: this.#options.orders,
      header: () => this.#header(),
      toShow: (view) => ({
        ...view,
        rows: view.rows
          .map((row): RunRow => {
            const doing = this.#doing.get(row.id);
            const isOver = row.endedAt !== null || doing === undefined;
            return isOver ? row : { ...row, status: "running", doing };
          })
          .toSorted((a, b) => a.startedAt - b.startedAt),
      }),
    });
  }

  /** Ends all processes and closes the database. */
  async end(): Promise<void> {
    await this.#live?.stop();
    await Promise.all(this.#workers.map((worker) => worker.end()));
    await this.#holdfast?.close();
  }

  async #startWorkers(): Promise<void> {
    const args = ["demo-worker", this.#database, this.#file, String(this.#options.paceMs)];
    for (const name of ["worker 1", "worker 2"])
      this.#workers.push(new DemoWorker(name, args, (worker, told) => this.#heard(worker, told)));
    await Promise.all(this.#workers.map((worker) => worker.ready(this.#stop)));
  }

  #heard(worker: DemoWorker, told: StepTold): void {
    const { kind, order, step } = told;
    if (kind === "began") {
      this.#doing.set(order, `${step}, ${worker.name}`);
      this.#tell(`${order}: ${step}, ${worker.name}`);
    } else this.#doing.delete(order);
    for (const listener of this.#listeners) listener(worker, told);
    this.#live?.draw();
  }

  /** A line for those who cannot be drawn anything. */
  #tell(line: string): void {
    if (!this.screen.isLive) this.screen.say(line);
  }

  /** Answers when all have been started, with a promise of all their results. */
  async #startOrders(holdfast: Holdfast): Promise<{ readonly results: Promise<unknown> }> {
    const { orders, paceMs } = this.#options;
    const { fulfil } = orderFunctions({
      file: this.#file,
      paceMs,
      tell: () => undefined,
    });
    const results: Promise<unknown>[] = [];
    for (let number = 1; number <= orders; number += 1) {
      const id = `order-${number}`;
      const run = await holdfast.start(fulfil, id, { id });
      const result = run.result().then(() => this.#tell(`${id}: done`));
      result.catch(() => undefined);
      results.push(result);
      await sleep(paceMs * 0.6, this.#stop);
    }
    return { results: Promise.all(results) };
  }

  get #middle(): string {
    return `order-${Math.ceil(this.#options.orders / 2)}`;
  }

  /** Kills the worker that prints the label of the middle order, waits for the other to take over, and returns that order. */
  async #killInTheMiddle(): Promise<string> {
    const { screen } = this;
    const order = this.#middle;
    const victim = await this.#next(
      (_, told) => told.kind === "began" && told.order === order && told.step === "print label",
    );
    await sleep(this.#options.paceMs / 2, this.#stop);
    const interrupted = victim.open;
    // Compares orders, not steps: on a slow machine a step may already be recorded, and is then not started again.
    const orders = new Set([order, ...interrupted.map((open) => open.order)]);
    const goneOn = this.#next(
      (worker, told) => worker !== victim && told.kind === "began" && orders.has(told.order),
    );
    const killedMs = monotonicMs();
    victim.kill();
    for (const open of interrupted)
      this.#doing.set(open.order, `${open.step}: interrupted, no worker has it`);
    const names = interrupted.map((open) => `${open.step} of ${open.order}`);
    screen.say(
      `${screen.style("red", `Killed ${victim.name}`)} (process ${victim.pid}) with SIGKILL${names.length > 0 ? `, in the middle of ${names.join(", ")}` : ""}.`,
    );
    const other = await goneOn;
    const ms = Math.round(monotonicMs() - killedMs);
    screen.say(
      `${screen.style("green", `${ms} ms later ${other.name}`)} (process ${other.pid}) resumed its orders.\n`,
    );
    return order;
  }

  /** Resolves to the worker that sends the next wanted message. */
  #next(isWanted: (worker: DemoWorker, told: StepTold) => boolean): Promise<DemoWorker> {
    const next = new Promise<DemoWorker>((resolve) => {
      const listener = (worker: DemoWorker, told: StepTold): void => {
        if (!isWanted(worker, told)) return;
        this.#listeners.delete(listener);
        resolve(worker);
      };
      this.#listeners.add(listener);
    });
    return Promise.race([next, untilAborted(this.#stop)]);
  }

  #header(): readonly string[] {
    const { style } = this.screen;
    const workers = this.#workers.map(({ name, pid, isKilled }) =>
      isKilled
        ? style("red", `${name} (process ${pid}) was killed`)
        : `${name} (process ${pid}) is running`,
    );
    return [`  ${workers.join("  ·  ")}`, ""];
  }

  #report(recordedAt: ReadonlyMap<string, number>, order: string, tookMs: number): DemoOutcome {
    const { screen } = this;
    const { orders } = this.#options;
    const effects = sideEffectsIn(readFileSync(this.#file, "utf8"));
    const isHeld = isProven(effects, {
      orders,
      steps: orderSteps,
      recordedAt,
    });
    const lines = [
      "",
      `All ${orders} orders were done ${spokenDuration(tookMs)} after the start. Runs of each step, counted by its side effects:`,
      "",
      ...countLines(countsOf(effects, orderSteps)),
      "",
      isHeld
        ? screen.style("green", "No recorded step ran again, and nothing was lost.")
        : screen.style("red", "A RECORDED STEP RAN AGAIN, OR A STEP WAS LOST."),
      "",
      ...thingsToTry(this.#database, order),
    ];
    for (const line of lines) screen.say(line);
    return isHeld ? "held" : "broken";
  }
}

/** The instant at which each step was recorded: by its run, or as the end of the called activity. */
async function recordsOf(
  { executions }: Holdfast,
  orders: number,
): Promise<ReadonlyMap<string, number>> {
  const recordedAt = new Map<string, number>();
  for (let number = 1; number <= orders; number += 1) {
    const order = `order-${number}`;
    const { items: events } = await executions.events(order, {
      kinds: ["stepFinished"],
    });
    for (const { event, at } of events)
      if (event.kind === "stepFinished")
        recordedAt.set(stepOfOrder({ order, step: event.name }), at);
    const { items: called } = await executions.list({ parent: order });
    for (const { state } of called)
      if (state.pending.kind === "finished")
        recordedAt.set(stepOfOrder({ order, step: "charge card" }), state.pending.finishedAt);
  }
  return recordedAt;
}

/** Rejects when the signal is aborted. */
function untilAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const end = (): void => reject(signal.reason as Error);
    if (signal.aborted) end();
    else signal.addEventListener("abort", end, { once: true });
  });
}
