import { closeSync, fstatSync, openSync, statSync } from "node:fs";
import type { Worker } from "node:worker_threads";
import { monotonicMs } from "../../../host/timers.ts";
import { HoldfastError } from "../../../model/errors.ts";
import type { Meters } from "../../meters.ts";
import { databaseClosed } from "../../refusals.ts";
import { noteDatabase, noteLog, watchedSizes } from "../log/cut-files.js";
import { assertInPlace, flushLog } from "./flush-log.js";
import type { FlushFaults, OpenLog } from "./flush-log.js";
import { startThread } from "../start-thread.ts";
import { flushThread } from "../threads.generated.ts";

/** Makes commits durable. */
export interface Flusher {
  /** False when an acknowledgement does not promise to survive power loss. */
  readonly isNeeded: boolean;
  /**
   * The largest number of calls in a batch for which a flush on the calling thread is worthwhile.
   */
  readonly inlineCallsMax: number;
  /**
   * Resolves when a flush that began after this call has succeeded, or at once when there is
   * nothing to flush.
   */
  flush(): Promise<void>;
  /** Flushes, blocking the thread. */
  flushInline(): void;
  /** True when there is nothing to flush: data outside the log is durable. */
  isLogEmpty(): boolean;
  /** True when every commit of every process is durable, as far as this one knows. */
  isFlushed(): boolean;
  /** True when a flush has failed. No later flush is trusted. */
  readonly hasFailed: boolean;
  /** Fails, as a flush would, when the file or its log was removed or replaced. */
  lookForFile(): void;
  close(): Promise<void>;
}

/** Remembers the moment at which a flush began, once it has succeeded. */
export interface FlushWitness<Moment> {
  /** The current moment, commits of other processes included. */
  now(): Moment;
  /** The moment after our last transaction, without asking any other connection. */
  atCommit(): Moment;
  succeeded(moment: Moment): void;
  /** True when nothing was committed since a successful flush began. */
  isDurable(moment: Moment): boolean;
}

export interface FlushTuning {
  /** The place of flushes: on the thread, here, or (the default) by measurement. */
  readonly place?: "thread" | "inline";
  readonly faults?: FlushFaults;
}

interface LogFlusherOptions extends FlushTuning {
  readonly readOnly: boolean;
  /** Called once, when no flush can be trusted any more. */
  readonly onFailure?: () => void;
}

/** The longest flush on the calling thread; measured flushes decide. */
const inlineMsMax = 1;

interface Waiter {
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** The flusher of databases whose acknowledgement does not wait for the disk. */
export const noFlusher: Flusher = {
  isNeeded: false,
  inlineCallsMax: Number.POSITIVE_INFINITY,
  flush: () => Promise.resolve(),
  flushInline: () => undefined,
  isLogEmpty: () => true,
  isFlushed: () => true,
  hasFailed: false,
  lookForFile: () => undefined,
  close: () => Promise.resolve(),
};

/**
 * Flushes the write-ahead log on its own thread. libuv's pool would do, but it is shared with the
 * user's crypto and file work, behind which a flush was measured to wait 272 ms.
 *
 * Nothing is flushed when no commit happened since the last flush began. The answers of a batch
 * without changes rest only on what that flush made durable, which a power cut does not take away.
 * `Commits` knows whether a commit happened, in this process or another, flushed or not. So an
 * answer that rests on another process's commit still waits for a flush unless that commit is
 * flushed.
 */
export class LogFlusher implements Flusher {
  readonly isNeeded = true;
  readonly #log: OpenLog;
  readonly #requests: Int32Array<SharedArrayBuffer> = new Int32Array(new SharedArrayBuffer(4));
  /** Started by the first flush that is not inline: a program that only reads needs no thread. */
  #worker: Worker | undefined;
  readonly #meters: Meters;
  readonly #witness: FlushWitness<unknown>;
  readonly #tuning: LogFlusherOptions;
  #running: { readonly waiters: readonly Waiter[]; readonly moment: unknown } | undefined;
  #gathering: Waiter[] = [];
  #usualMs = Number.POSITIVE_INFINITY;
  #failure: HoldfastError | undefined;
  #isClosed = false;

  constructor(
    database: string,
    meters: Meters,
    witness: FlushWitness<unknown>,
    tuning: LogFlusherOptions,
  ) {
    this.#meters = meters;
    this.#witness = witness;
    this.#tuning = tuning;
    // Opened for writing where possible: Windows flushes only writable files.
    const path = `${database}-wal`;
    const fd = openSync(path, tuning.readOnly ? "r" : "r+");
    const { dev, ino } = fstatSync(fd, { bigint: true });
    const beside = statSync(database, { bigint: true });
    this.#log = {
      fd,
      path,
      dev,
      ino,
      database,
      beside: { dev: beside.dev, ino: beside.ino },
      seen: watchedSizes(),
    };
    noteLog(this.#log);
    noteDatabase(this.#log, Number(beside.size));
  }

  get inlineCallsMax(): number {
    if (this.#tuning.place !== undefined)
      return this.#tuning.place === "inline" ? Number.POSITIVE_INFINITY : 0;
    return this.#usualMs < inlineMsMax ? 1 : 0;
  }

  flush(): Promise<void> {
    if (this.#isClosed) return Promise.reject(databaseClosed());
    if (this.#failure !== undefined) return Promise.reject(this.#failure);
    return new Promise((resolve, reject) => {
      this.#gathering.push({ resolve, reject });
      if (this.#running === undefined) this.#start();
    });
  }

  flushInline(): void {
    if (this.#failure !== undefined) throw this.#failure;
    const moment = this.#witness.atCommit();
    if (this.#witness.isDurable(moment)) return;
    const startedMs = monotonicMs();
    try {
      flushLog(this.#log, this.#tuning.faults);
    } catch (error) {
      throw this.#fail(error);
    }
    this.#measured(monotonicMs() - startedMs);
    this.#witness.succeeded(moment);
  }

  isLogEmpty(): boolean {
    const moment = this.#witness.now();
    // A checkpoint flushes the database file before it empties the log.
    const isEmpty = fstatSync(this.#log.fd).size === 0;
    if (isEmpty) this.#witness.succeeded(moment);
    return isEmpty;
  }

  lookForFile(): void {
    if (this.hasFailed || this.#isClosed) return;
    try {
      assertInPlace(this.#log);
    } catch (error) {
      // A file that cannot be inspected may still exist: a flush will show.
      if ((error as NodeJS.ErrnoException).code === undefined) this.#fail(error);
    }
  }

  get hasFailed(): boolean {
    return this.#failure !== undefined;
  }

  isFlushed(): boolean {
    return this.#witness.isDurable(this.#witness.now());
  }

  async close(): Promise<void> {
    if (this.#running !== undefined) await this.flush().catch(() => undefined);
    this.#isClosed = true;
    await this.#worker?.terminate();
    closeSync(this.#log.fd);
  }

  #start(): void {
    const waiters = this.#gathering;
    const moment = this.#witness.now();
    this.#gathering = [];
    if (this.#witness.isDurable(moment)) {
      for (const waiter of waiters) waiter.resolve();
      return;
    }
    this.#running = { waiters, moment };
    try {
      this.#worker ??= this.#startThread();
    } catch (error) {
      // The system may be unable to start another thread.
      return this.#answered({ elapsedMs: 0, error: error as Error });
    }
    // Callers wait for the answer, so the process must not end before it.
    this.#worker.ref();
    Atomics.add(this.#requests, 0, 1);
    Atomics.notify(this.#requests, 0);
  }

  #startThread(): Worker {
    const worker = startThread(flushThread, {
      log: this.#log,
      faults: this.#tuning.faults,
      counter: this.#requests.buffer,
    });
    worker.on("message", (answer: Answer) => this.#answered(answer));
    worker.on("error", (error) => this.#answered({ elapsedMs: 0, error }));
    return worker;
  }

  #answered(answer: Answer): void {
    const finished = this.#running;
    this.#running = undefined;
    this.#worker?.unref();
    if (answer.error === undefined) {
      this.#measured(answer.elapsedMs);
      if (finished !== undefined) this.#witness.succeeded(finished.moment);
      for (const waiter of finished?.waiters ?? []) waiter.resolve();
      if (this.#gathering.length > 0) this.#start();
    } else {
      const failure = this.#fail(answer.error);
      for (const waiter of [...(finished?.waiters ?? []), ...this.#gathering.splice(0)])
        waiter.reject(failure);
    }
  }

  /** Updates the expected duration of a flush: slower ones count at once, faster ones slowly. */
  #measured(elapsedMs: number): void {
    this.#meters.flushed(elapsedMs);
    const usualMs = Number.isFinite(this.#usualMs) ? this.#usualMs : elapsedMs;
    this.#usualMs = Math.max(elapsedMs, usualMs) * 0.25 + usualMs * 0.75;
    if (elapsedMs < usualMs) this.#usualMs = elapsedMs * 0.1 + usualMs * 0.9;
  }

  /**
   * Records a failure. No later flush is trusted, because the kernel may have dropped what it could
   * not write.
   */
  #fail(error: unknown): HoldfastError {
    if (this.#failure !== undefined) return this.#failure;
    const reason = (error as Partial<Error>).message ?? String(error);
    this.#failure = new HoldfastError(
      "FLUSH_FAILED",
      `The write-ahead log of "${this.#log.database}" could not be flushed (${reason}), so the latest reads and writes may not survive a crash. Check the disk, then close and reopen the database.`,
      { reason, path: this.#log.database },
    );
    this.#tuning.onFailure?.();
    return this.#failure;
  }
}

interface Answer {
  readonly elapsedMs: number;
  readonly error: { readonly message: string } | undefined;
}
