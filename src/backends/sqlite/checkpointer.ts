import { Worker } from "node:worker_threads";
import { monotonicMs, sleep } from "../../host/timers.ts";
import { HoldfastError } from "../../model/errors.ts";
import type { Stats } from "../../stores/database.ts";
import type { Driver } from "./drivers.ts";

interface Reply {
  readonly busy: boolean;
  /** Frames in the log and how many of them the database file has; −1 unknown. */
  readonly log: number;
  readonly checkpointed: number;
  readonly frameBytes: number;
  readonly error?: string;
}

/** How long the thread's statements wait for readers and writers. */
const busyMs = 20;
const backoffFirstMs = 50;
const backoffLongestMs = 2_000;
/** Few enough frames that copying them while writers wait takes a moment. */
const framesLeftMax = 200;
/** Before the first measurement: a write dirties about one page. */
const frameBytesGuess = 4_120;

/**
 * Bounds the write-ahead log from a thread of its own. While the log is small
 * it copies frames beside the writer (PASSIVE). That alone never ends under
 * steady writing, so above the bound the writer is held for a moment and the
 * log restarted from its beginning.
 */
export class Checkpointer {
  readonly #worker: Worker;
  readonly #boundBytes: number;
  readonly #whileHeld: (action: () => Promise<void>) => Promise<void>;
  readonly #counts = { passive: 0, restarts: 0, failures: 0 };
  #onReply: ((reply: Reply) => void) | undefined;
  #working: Promise<void> | undefined;
  /** Since the last look at the log. */
  #statements = 0;
  #payloadBytes = 0;
  #bytesPerStatement = frameBytesGuess;
  #walBytes = 0;
  #backoffMs = 0;
  #notBeforeMs = 0;
  /** What every question is answered with once the thread has died. */
  #dead: Reply | undefined;

  constructor(
    driver: Driver,
    path: string,
    boundBytes: number,
    whileHeld: (action: () => Promise<void>) => Promise<void>,
  ) {
    this.#boundBytes = boundBytes;
    this.#whileHeld = whileHeld;
    this.#worker = new Worker(
      new URL("./checkpoint-thread.js", import.meta.url),
      {
        execArgv: [],
        workerData: {
          holdfastThread: "checkpoint",
          driver: driver.name,
          modulePath: driver.modulePath,
          path,
          busyMs,
        },
      },
    );
    this.#worker.unref();
    this.#worker.on("message", (reply: Reply) => this.#replied(reply));
    this.#worker.on("error", (error) => {
      this.#dead = {
        busy: false,
        log: -1,
        checkpointed: -1,
        frameBytes: 0,
        error: error.message,
      };
      this.#replied(this.#dead);
    });
  }

  get walBytes(): number {
    return this.#walBytes;
  }

  get counts(): Stats["checkpoints"] {
    return { ...this.#counts };
  }

  /** Told after each commit; starts work when the log may have grown enough. */
  wrote(statements: number, boundBytes: number): void {
    this.#statements += statements;
    this.#payloadBytes += boundBytes;
    const grownBytes =
      this.#payloadBytes + this.#statements * this.#bytesPerStatement;
    if (
      grownBytes < this.#boundBytes / 4 ||
      this.#working !== undefined ||
      monotonicMs() < this.#notBeforeMs
    )
      return;
    this.#working = this.#work().finally(() => (this.#working = undefined));
  }

  /**
   * Empties the log before this process acknowledges anything, so that no
   * acknowledgement rests on frames that another process failed to flush.
   * @returns false when others' locks did not allow it within the budget.
   */
  async restartAtOpen(budgetMs: number): Promise<boolean> {
    const startedMs = monotonicMs();
    for (let waitMs = 1; ; waitMs = Math.min(busyMs, waitMs * 2)) {
      const reply = await this.#ask("RESTART");
      if (reply.error !== undefined) throw logNotEmptied(reply.error);
      if (!reply.busy) return true;
      if (monotonicMs() - startedMs >= budgetMs) return false;
      await sleep(waitMs);
    }
  }

  /** Moves all of the log into the database file, if nobody is in the way. */
  async close(): Promise<void> {
    await this.#working;
    await this.#ask("TRUNCATE");
    if (this.#dead !== undefined) return;
    const exited = new Promise((resolve) => this.#worker.once("exit", resolve));
    this.#worker.ref();
    this.#worker.postMessage({ mode: "close" });
    await exited;
  }

  async #work(): Promise<void> {
    const statements = this.#statements;
    const payloadBytes = this.#payloadBytes;
    this.#statements = 0;
    this.#payloadBytes = 0;
    const before = this.#walBytes;
    const passive = await this.#ask("PASSIVE");
    this.#counts.passive += 1;
    if (passive.log < 0) return this.#backOff();
    const grown = this.#walBytes - before - payloadBytes;
    if (grown > 0 && statements > 0)
      this.#bytesPerStatement = Math.max(256, grown / statements);
    const left = passive.log - passive.checkpointed;
    const over = this.#walBytes > this.#boundBytes && left <= framesLeftMax;
    if (!over && this.#walBytes <= 2 * this.#boundBytes) return;
    await this.#whileHeld(async () => {
      const restart = await this.#ask("RESTART");
      if (restart.busy || restart.error !== undefined) return this.#backOff();
      this.#counts.restarts += 1;
      this.#walBytes = 0;
      this.#backoffMs = 0;
    });
  }

  /** A long reader or another checkpointer is in the way; writers go on. */
  #backOff(): void {
    this.#counts.failures += 1;
    this.#backoffMs = Math.min(
      backoffLongestMs,
      Math.max(backoffFirstMs, this.#backoffMs * 2),
    );
    this.#notBeforeMs = monotonicMs() + this.#backoffMs;
  }

  #ask(mode: "PASSIVE" | "RESTART" | "TRUNCATE"): Promise<Reply> {
    if (this.#dead !== undefined) return Promise.resolve(this.#dead);
    this.#worker.ref();
    return new Promise((resolve) => {
      this.#onReply = resolve;
      this.#worker.postMessage({ mode });
    });
  }

  #replied(reply: Reply): void {
    this.#worker.unref();
    if (reply.log >= 0) this.#walBytes = reply.log * reply.frameBytes;
    this.#onReply?.(reply);
    this.#onReply = undefined;
  }
}

function logNotEmptied(reason: string): HoldfastError {
  return new HoldfastError(
    /full/i.test(reason) ? "DISK_FULL" : "STATEMENT_FAILED",
    `The write-ahead log could not be moved into the database file (${reason}). Free some space and check the disk, then open the database again.`,
    { reason },
  );
}
