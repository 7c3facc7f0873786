import { statSync } from "node:fs";
import { monotonicMs, sleep } from "../../../host/timers.ts";
import { HoldfastError } from "../../../model/errors.ts";
import type { Stats, Warning } from "../../../sql/database.ts";
import { isBusy, statementFailure } from "../write/failures.ts";
import { HeldBack } from "./held-back.ts";
import type { InTheWay } from "./held-back.ts";
import { threadError } from "./log-thread.ts";
import type { LogThread, ThreadReply } from "./log-thread.ts";

/** What a checkpoint came to. */
interface Reply extends InTheWay, ThreadReply {
  readonly busy: boolean;
  /** Frames in the log and how many of them the database file has; −1 unknown. */
  readonly log: number;
  readonly checkpointed: number;
  readonly frameBytes: number;
}

export interface CheckpointerOptions {
  /** The log is restarted when it outgrows this. */
  readonly boundBytes: number;
  readonly whileHeld: (action: () => Promise<void>) => Promise<void>;
  /** Told when the thread has committed its touch, which looks like a foreign commit. */
  readonly onTouched: () => void;
  readonly warn: (warning: Warning) => void;
}

/** How long the thread's statements wait for readers and writers. */
export const checkpointBusyMs = 20;
const backoffFirstMs = 50;
const backoffLongestMs = 2_000;
/** Few enough frames that copying them while writers wait takes a moment. */
const framesLeftMax = 200;
/** A busy restart takes 20 ms; after a few of them the log stays as it is. */
const restartsMax = 5;
/** A log so many times larger than its bound is worth a warning. */
const warnAtBounds = 64;
/** Before the first measurement: a write dirties about one page. */
const frameBytesGuess = 4_120;

/**
 * Bounds the write-ahead log from a thread of its own. While the log is small
 * it copies frames beside the writer (PASSIVE). That alone never ends under
 * steady writing, so above the bound the writer is held for a moment and the
 * log restarted from its beginning.
 */
export class Checkpointer {
  readonly #thread: LogThread;
  readonly #path: string;
  readonly #options: CheckpointerOptions;
  readonly #counts = { passive: 0, restarts: 0, failures: 0 };
  #working: Promise<void> | undefined;
  /** Since the last look at the log. */
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

  /** Who keeps the log from being restarted, for `stats()`. */
  get heldBack(): string | undefined {
    return this.#heldBack.report(this.#walBytes);
  }

  get counts(): Stats["checkpoints"] {
    return { ...this.#counts };
  }

  /** Told after each commit; starts work when the log may have grown enough. */
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
   * Before this process acknowledges anything, makes sure that no
   * acknowledgement will rest on frames that another process failed to flush:
   * writes the log anew, and empties it unless a reader holds it. In this order,
   * since a checkpoint that a power cut interrupts is made again from the log:
   * with a hole in that, the file would be left half old and half new.
   * @returns false when others' locks did not allow it within the budget.
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
   * Moves all of the log into the database file, if nobody is in the way. After
   * a flush that failed the log is written anew first, as when it is opened; if
   * that fails too it is left as it is.
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
    // Another process may have restarted it where we could not.
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

  /** A long reader or another checkpointer is in the way; writers go on. */
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
    // Busy comes as an error from some statements; both mean: try later.
    const busy = isBusy(reply.failure);
    const error = busy ? undefined : reply.failure.message;
    return { ...reply, busy, log: -1, checkpointed: -1, error };
  }

  /** Nobody wrote since it was opened, so the last connection has nothing to move when it closes. */
  #isLogEmpty(): boolean {
    const log = statSync(`${this.#path}-wal`, { throwIfNoEntry: false });
    return log === undefined || log.size === 0;
  }
}

/** Of a full disk and of a damaged file the driver's error tells all; of anything else, what was tried is told. */
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
