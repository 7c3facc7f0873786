import type { Worker } from "node:worker_threads";
import type { Driver } from "../drivers/drivers.ts";
import { startThread } from "../start-thread.ts";
import { checkpointThread } from "../threads.generated.ts";

/** A driver's error in the form sent between threads. */
export interface ThreadFailure {
  readonly message: string;
  readonly code?: unknown;
  readonly errcode?: number;
}

/** The answer of the thread: a value, the result of a checkpoint, or a failure. */
export interface ThreadReply {
  readonly value?: unknown;
  readonly failure?: ThreadFailure;
}

interface Question {
  readonly mode: string;
  readonly statements?: readonly object[];
}

interface Waiting {
  /** True when the request leaves a connection, and perhaps a transaction, open in the thread. */
  readonly opens: boolean;
  readonly resolve: (reply: ThreadReply) => void;
}

/**
 * The thread for work on the file that would block the event loop: it checkpoints the log, and
 * creates and migrates the schema of a file that is being opened. Starting it takes about 30 ms of
 * processor time, as much as the rest of an open. So the first request starts it.
 */
export class LogThread {
  readonly #source: object;
  readonly #waiting: Waiting[] = [];
  #worker: Worker | undefined;
  #hasOpened = false;
  /** The answer to every request once the thread has died with something open. */
  #dead: ThreadReply | undefined;

  constructor(driver: Driver, path: string, busyMs: number) {
    this.#source = {
      driver: driver.name,
      modulePath: driver.modulePath,
      path,
      busyMs,
    };
  }

  get isStarted(): boolean {
    return this.#worker !== undefined;
  }

  /**
   * Sends a request. Answers come in the order of the requests. A thread that cannot be started
   * also gives an answer.
   */
  ask<R extends ThreadReply>(question: Question): Promise<R> {
    if (this.#dead !== undefined) return Promise.resolve(this.#dead as R);
    let worker: Worker;
    try {
      worker = this.#worker ??= this.#start();
    } catch (error) {
      const message = `the thread of the log could not be started: ${(error as Error).message}`;
      return Promise.resolve({ failure: { message } } as R);
    }
    worker.ref();
    return new Promise<R>((resolve) => {
      this.#waiting.push({
        opens: question.mode !== "INSPECT",
        resolve: resolve as (reply: ThreadReply) => void,
      });
      worker.postMessage(question);
    });
  }

  async close(): Promise<void> {
    const worker = this.#worker;
    if (worker === undefined || this.#dead !== undefined) return;
    const exited = new Promise((resolve) => worker.once("exit", resolve));
    worker.ref();
    worker.postMessage({ mode: "close" });
    await exited;
  }

  #start(): Worker {
    const worker = startThread(checkpointThread, this.#source);
    worker.on("message", (reply: ThreadReply) => {
      this.#hasOpened ||= this.#waiting[0]?.opens === true;
      this.#replied(reply);
    });
    const ended = (message: string) => {
      if (worker === this.#worker) this.#ended(message);
    };
    worker.on("error", (error) => ended(error.message));
    worker.on("exit", () => ended("the thread of the log has ended"));
    return worker;
  }

  /**
   * Handles the end of the thread. If nothing was open in it, nothing depends on it, and the next
   * request starts another thread.
   */
  #ended(message: string): void {
    const reply = { failure: { message } };
    if (this.#hasOpened) this.#dead ??= reply;
    else this.#worker = undefined;
    for (const { resolve } of this.#waiting.splice(0)) resolve(reply);
  }

  #replied(reply: ThreadReply): void {
    const waiting = this.#waiting.shift();
    if (this.#waiting.length === 0) this.#worker?.unref();
    waiting?.resolve(reply);
  }
}

/** Restores the codes of an error, which structured clone strips. */
export function threadError(failure: ThreadFailure): Error {
  return Object.assign(new Error(failure.message), failure);
}
