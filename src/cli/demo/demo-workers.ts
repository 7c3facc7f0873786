import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { startOwnProcess } from "../process/own-process.ts";
import type { StepTold } from "./orders.ts";
import type { WorkerTold } from "./worker.ts";

/** A step that a worker has started and not ended. */
export type OpenStep = Pick<StepTold, "order" | "step">;

/** A worker process of the demo, as its parent process sees it. */
export class DemoWorker {
  readonly name: string;
  isKilled = false;
  readonly #process: ChildProcess;
  readonly #open = new Map<string, OpenStep>();
  readonly #gone: Promise<unknown>;
  #errors = "";

  constructor(
    name: string,
    args: readonly string[],
    onTold: (worker: DemoWorker, told: StepTold) => void,
  ) {
    this.name = name;
    this.#process = startOwnProcess(args);
    this.#gone = once(this.#process, "close");
    this.#process.stderr?.on("data", (part) => {
      this.#errors = `${this.#errors}${String(part)}`.slice(-2_000);
    });
    this.#process.on("message", (message) => {
      const told = message as WorkerTold;
      if (told.kind === "ready" || this.isKilled) return;
      const { order, step } = told;
      if (told.kind === "began") this.#open.set(order, { order, step });
      else this.#open.delete(order);
      onTold(this, told);
    });
  }

  get pid(): number {
    return this.#process.pid ?? 0;
  }

  /** The steps that it is running. */
  get open(): readonly OpenStep[] {
    return [...this.#open.values()];
  }

  /** Resolves when the worker is ready. */
  async ready(signal: AbortSignal): Promise<void> {
    const isReady = once(this.#process, "message", { signal });
    isReady.catch(() => undefined);
    const isGone = this.#gone.then(() => {
      throw new Error(
        `A worker process of the demo has ended: ${this.#errors.trim() || "it printed nothing"}.`,
      );
    });
    isGone.catch(() => undefined);
    await Promise.race([isReady, isGone]);
  }

  /** Kills the process as `kill -9` does. */
  kill(): void {
    this.isKilled = true;
    this.#process.kill("SIGKILL");
  }

  /** Kills the process, and waits until it has ended. */
  async end(): Promise<void> {
    this.kill();
    await this.#gone;
  }
}
