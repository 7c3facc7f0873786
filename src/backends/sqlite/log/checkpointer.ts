import { statSync } from "node:fs";
import { monotonicMs, sleep } from "../../../host/timers.ts";
import { HoldfastError } from "../../../model/errors.ts";
import type { Stats, Warning } from "../../../sql/database.ts";
import { isBusy, statementFailure } from "../write/failures.ts";
import { HeldBack } from "./held-back.ts";
import type { InTheWay } from "./held-back.ts";
import { threadError } from "./log-thread.ts";
import type { LogThread, ThreadReply } from "./log-thread.ts";

/** The result of a checkpoint. */
interface Reply extends InTheWay, ThreadReply {
  readonly busy: boolean;
  /** Frames in the log, and frames copied to the database file; −1 when unknown. */
  readonly log: number;
  readonly checkpointed: number;
  readonly frameBytes: number;
}

export interface CheckpointerOptions {
  /** The size above which the log is restarted. */
  readonly boundBytes: number;
  readonly whileHeld: (action: () => Promise<void>) => Promise<void>;
  /** Called when the thread has committed its touch, which looks like a foreign commit. */
  readonly onTouched: () => void;
  readonly warn: (warning: Warning) => void;
}

/** The longest wait of the thread's statements for readers and writers. */
export const checkpointBusyMs = 20;
const backoffFirstMs = 50;
const backoffLongestMs = 2_000;
/** Few enough frames that copying them delays writers only briefly. */
const framesLeftMax = 200;
/** A busy restart takes 20 ms. After this many the log stays as it is. */
const restartsMax = 5;
/** A log this many times larger than its bound causes a warning. */
const warnAtBounds = 64;
/** A guess before the first measurement: a write dirties about one page. */
const frameBytesGuess = 4_120;

/**
 * Bounds the write-ahead log from its own thread. While the log is small, it copies frames beside
 * the writer (PASSIVE). Under steady writing that never ends. So above the bound the writer is
 * paused briefly and the log restarted from its beginning.
 */
export class Checkpointer {
  readonly #thread: LogThread;
  readonly #path: string;
  readonly #options: CheckpointerOptions;
  readonly #counts = { passive: 0, restarts: 0, failures: 0 };
  #working: Promise<void> | undefined;
  /** Counts since the last look at the log. */
  #statements = 0;
  #payloadBytes = 0;
  #bytesPerStatement = frameBytesGuess;
  #walBytes = 0;
  #backoffMs = 0;
  readonly #heldBack = new HeldBack();
  #hasWarned = false;
  #notBeforeMs = 0;

  constructor(thread: LogThread, path: string, options: CheckpointerOptions) {
    this.#thread = thread;
    this.#path = path;
    this.#options = options;
  }

  get walBytes(): number {
    return this.#walBytes;
  }

  /** The processes that keep the log from being restarted, for `stats()`. */
  get heldBack(): string | undefined {
    return this.#heldBack.report(this.#walBytes);
  }

  get counts(): Stats["checkpoints"] {
    return { ...this.#counts };
  }

  /** Called after each commit; starts work when the log may have grown enough. */
  wrote(statements: number, boundBytes: number): void {
    this.#statements += statements;
    this.#payloadBytes += boundBytes;
    const grownBytes = this.#payloadBytes + this.#statements * this.#bytesPerStatement;
    if (
      grownBytes < this.#options.boundBytes / 4 ||
      this.#working !== undefined ||
      monotonicMs() < this.#notBeforeMs
    )
      return;
    this.#working = this.#work().finally(() => (this.#working = undefined));
  }

  /**
   * Prepares the log before this process acknowledges anything. It ensures that no acknowledgement
   * rests on frames that another process failed to flush: it rewrites the log, then empties it
   * unless a reader holds it. The order matters, since a checkpoint interrupted by a power cut is
   * repeated from the log. With a hole in the log, the file would be left half old and half new.
   * @returns false when other processes' locks did not allow it within the budget.
   */
  async makeLogSound(budgetMs: number): Promise<boolean> {
    const startedMs = monotonicMs();
    let isWritten = false;
    let restarts = 0;
    for (let tries = 1; ; tries += 1) {
      const reply = await this.#ask(isWritten ? "RESTART" : "REWRITE");
      if (reply.failure !== undefined && !reply.busy) throw logUnsound(threadError(reply.failure));
      if (isWritten) restarts += 1;
      if (isWritten && (!reply.busy || restarts === restartsMax)) return true;
      if (!reply.busy) {
        isWritten = true;
        continue;
      }
      if (monotonicMs() - startedMs >= budgetMs) return isWritten;
      await sleep(Math.min(checkpointBusyMs, tries));
    }
  }

  /**
   * Moves the whole log into the database file unless another process is in the way. After a failed
   * flush the log is rewritten first, as when it is opened. If that fails too, the log is left as
   * it is.
   */
  async close(hasFlushFailed: boolean): Promise<void> {
    await this.#working;
    if (this.#thread.isStarted || !this.#isLogEmpty()) {
      const isSound = !hasFlushFailed || (await this.#ask("REWRITE")).failure === undefined;
      if (isSound) await this.#ask("TRUNCATE");
    }
    await this.#thread.close();
  }

  async #work(): Promise<void> {
    const statements = this.#statements;
    const payloadBytes = this.#payloadBytes;
    this.#statements = 0;
    this.#payloadBytes = 0;
    const before = this.#walBytes;
    const passive = await this.#ask("PASSIVE");
    this.#counts.passive += 1;
    if (passive.log < 0) return this.#backOff(passive);
    const grown = this.#walBytes - before - payloadBytes;
    if (grown > 0 && statements > 0) this.#bytesPerStatement = Math.max(256, grown / statements);
    const left = passive.log - passive.checkpointed;
    const over = this.#walBytes > this.#options.boundBytes && left <= framesLeftMax;
    // Another process may have restarted the log where this one could not.
    if (this.#walBytes <= this.#options.boundBytes) this.#heldBack.clear();
    if (!over && this.#walBytes <= 2 * this.#options.boundBytes) return;
    await this.#options.whileHeld(async () => {
      const restart = await this.#ask("RESTART");
      if (restart.busy || restart.error !== undefined) return this.#backOff(restart);
      this.#counts.restarts += 1;
      this.#options.onTouched();
      this.#walBytes = 0;
      this.#backoffMs = 0;
      this.#heldBack.clear();
    });
  }

  /** A long reader or another checkpointer is in the way. Writes continue. */
  #backOff(reply: Reply): void {
    this.#counts.failures += 1;
    this.#heldBack.note(reply);
    this.#warnOnce();
    this.#backoffMs = Math.min(backoffLongestMs, Math.max(backoffFirstMs, this.#backoffMs * 2));
    this.#notBeforeMs = monotonicMs() + this.#backoffMs;
  }

  #warnOnce(): void {
    if (this.#hasWarned || this.#walBytes < warnAtBounds * this.#options.boundBytes) return;
    this.#hasWarned = true;
    this.#options.warn({
      code: "LOG_HELD_BACK",
      message: this.#heldBack.text(this.#walBytes),
    });
  }

  async #ask(mode: "PASSIVE" | "RESTART" | "REWRITE" | "TRUNCATE"): Promise<Reply> {
    const reply = await this.#thread.ask<Reply>({ mode });
    if (reply.log >= 0) this.#walBytes = reply.log * reply.frameBytes;
    if (reply.failure === undefined) return reply;
    // Some statements report busy as an error. Both forms mean: retry later.
    const busy = isBusy(reply.failure);
    const error = busy ? undefined : reply.failure.message;
    return { ...reply, busy, log: -1, checkpointed: -1, error };
  }

  /**
   * True when nothing was written since the file was opened, so the last connection has nothing to
   * move when it closes.
   */
  #isLogEmpty(): boolean {
    const log = statSync(`${this.#path}-wal`, { throwIfNoEntry: false });
    return log === undefined || log.size === 0;
  }
}

/**
 * The error for a log that could not be made sound. A full disk or a damaged file has a clear
 * driver error; for all other causes the message names the attempted step.
 */
function logUnsound(cause: Error): HoldfastError {
  const failure = statementFailure(cause, "write", (table) => table);
  if (failure.code !== "STATEMENT_FAILED") return failure;
  return new HoldfastError(
    "STATEMENT_FAILED",
    `The write-ahead log could not be moved into the database file (${cause.message}).`,
    { reason: cause.message },
    { cause },
  );
}
