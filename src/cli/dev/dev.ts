import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { after } from "../../host/timers.ts";
import type { Holdfast } from "../../runtime/client/holdfast.ts";
import type { CliHost } from "../host.ts";
import { showRuns, type LiveRuns } from "../live/live-runs.ts";
import type { Screen } from "../live/screen.ts";
import { WatchedFiles } from "../modules/watched-files.ts";
import { ownCommand, startOwnProcess } from "../process/own-process.ts";
import { oneLine } from "../text/style.ts";
import { untilStopped } from "../process/until-stopped.ts";
import type { DevTold } from "./dev-worker.ts";
import { unparkMended } from "./unpark-mended.ts";
import { onLines, unpaintedAtEnd } from "./worker-output.ts";

export interface DevOptions {
  /** The file as the user named it. */
  readonly file: string;
  /** The database as displayed. */
  readonly database: string;
  /** The options for suggested commands: empty, or ` --db …`. */
  readonly dbOption: string;
  /** Arguments that point the worker process at the same database. */
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** The time for a worker to stop before it is killed. */
const stopMs = 7_000;
/** The pause before a dead worker is restarted, doubled each time. */
const againMsMin = 500;
const againMsMax = 10_000;

/**
 * Runs the functions of a module in a separate process, restarts that process
 * when the module or one of its imports changes, and shows the runs. Resolves
 * after a stop, when everything has ended.
 */
export async function runDev(
  holdfast: Holdfast,
  screen: Screen,
  host: Pick<CliHost, "cwd" | "stop" | "timeZone">,
  options: DevOptions,
): Promise<void> {
  const session = new DevSession(holdfast, screen, host, options);
  try {
    session.start();
    await untilStopped(host.stop);
  } finally {
    await session.end();
    screen.close();
  }
}

class DevSession {
  readonly #holdfast: Holdfast;
  readonly #screen: Screen;
  readonly #options: DevOptions;
  readonly #cwd: string;
  readonly #files: WatchedFiles;
  readonly #live: LiveRuns;
  #worker: { readonly process: ChildProcess; readonly gone: Promise<unknown> } | undefined;
  #functions: readonly string[] = [];
  /** The function in the suggested command. */
  #first = "<function>";
  #state = "loading";
  #restarting: Promise<void> | undefined;
  #isChangedAgain = false;
  #isEnding = false;
  #againMs = againMsMin;
  #cancelAgain: () => void = () => undefined;

  constructor(
    holdfast: Holdfast,
    screen: Screen,
    { cwd, timeZone }: Pick<CliHost, "cwd" | "timeZone">,
    options: DevOptions,
  ) {
    this.#holdfast = holdfast;
    this.#screen = screen;
    this.#options = options;
    this.#cwd = cwd;
    this.#files = new WatchedFiles((file) => this.#changed(file));
    this.#live = showRuns(holdfast, screen, {
      timeZone,
      header: () => this.#header(),
    });
    this.#files.add(path.resolve(cwd, options.file));
  }

  start(): void {
    const { file, args, env } = this.#options;
    const started = startOwnProcess(["dev-worker", file, ...args], {
      cwd: this.#cwd,
      env,
    });
    const worker = { process: started, gone: once(started, "close") };
    this.#worker = worker;
    this.#state = "loading";
    onLines(started, (line) => this.#screen.say(line));
    started.on("message", (told) => {
      if (this.#worker === worker) this.#heard(told as DevTold);
    });
    void worker.gone.then(() => {
      if (this.#worker === worker) this.#died(started);
    });
    this.#live.draw();
  }

  /** Stops the worker, the file watchers and the display. */
  async end(): Promise<void> {
    this.#isEnding = true;
    this.#files.close();
    this.#cancelAgain();
    this.#state = "stopping";
    this.#live.draw();
    await this.#restarting;
    await this.#stopWorker();
    await this.#live.stop();
  }

  #heard(told: DevTold): void {
    switch (told.kind) {
      case "imported":
        for (const file of told.files) this.#files.add(file);
        return;
      case "failed":
        this.#state = "broken";
        this.#files.watchAllModules(true);
        this.#screen.say(this.#screen.style("red", `${this.#options.file} cannot be run:`));
        this.#screen.say(unpaintedAtEnd(told.text));
        this.#screen.say("Fix the file; it reloads on save.");
        break;
      case "ready":
        this.#state = "working";
        this.#functions = told.functions;
        this.#first = told.workflows[0] ?? told.functions[0] ?? this.#first;
        this.#files.watchAllModules(false);
        this.#againMs = againMsMin;
        this.#screen.say(`Running ${told.functions.join(", ")}.`);
        void this.#unpark();
        break;
    }
    this.#live.draw();
  }

  async #unpark(): Promise<void> {
    try {
      const ids = await unparkMended(this.#holdfast, this.#functions);
      if (ids.length > 0)
        this.#screen.say(
          `Unparked ${ids.slice(0, 5).join(", ")}${ids.length > 5 ? `, … (${ids.length} runs)` : ""}: the current code may match them.`,
        );
    } catch (error) {
      if (!this.#isEnding)
        this.#screen.say(oneLine(`Could not unpark runs: ${(error as Error).message}`));
    }
  }

  /** Restarts a dead worker. After a load failure it waits for a change instead. */
  #died({ exitCode, signalCode }: ChildProcess): void {
    this.#worker = undefined;
    if (this.#isEnding || this.#state === "broken") return;
    this.#state = "dead";
    const how = signalCode ?? `code ${exitCode}`;
    this.#screen.say(
      this.#screen.style("yellow", `The worker process ended (${how}) and will be restarted.`),
    );
    this.#cancelAgain = after(this.#againMs, () => {
      if (this.#worker === undefined && !this.#isEnding) this.start();
    });
    this.#againMs = Math.min(againMsMax, 2 * this.#againMs);
    this.#live.draw();
  }

  #changed(file: string): void {
    if (this.#isEnding) return;
    this.#isChangedAgain = true;
    this.#screen.say(`${oneLine(path.relative(this.#cwd, file))} has changed.`);
    this.#restarting ??= this.#restart().finally(() => {
      this.#restarting = undefined;
    });
  }

  async #restart(): Promise<void> {
    while (this.#isChangedAgain) {
      this.#isChangedAgain = false;
      this.#cancelAgain();
      this.#state = "loading";
      this.#live.draw();
      await this.#stopWorker();
      if (!this.#isEnding) this.start();
    }
  }

  /** Stops the worker; its work is recorded or released first. */
  async #stopWorker(): Promise<void> {
    const worker = this.#worker;
    if (worker === undefined) return;
    this.#worker = undefined;
    worker.process.kill("SIGTERM");
    const cancel = after(stopMs, () => worker.process.kill("SIGKILL"));
    await worker.gone;
    cancel();
  }

  #header(): readonly string[] {
    const { style } = this.#screen;
    const { file, database, dbOption } = this.#options;
    const states: Readonly<Record<string, string>> = {
      loading: "is loading",
      working: `runs ${this.#functions.join(", ")}`,
      broken: style("red", "cannot be run, see above"),
      dead: style("yellow", "is restarting"),
      stopping: "is stopping",
    };
    return [
      "",
      `${style("bold", file)} ${states[this.#state] ?? ""} · ${database} · Ctrl-C to stop`,
      `Start a run: ${ownCommand()} start ${file} ${this.#first} --input '"…"'${dbOption}`,
      "",
    ];
  }
}
