import type { Worker } from "node:worker_threads";
import type { Driver } from "./drivers.ts";
import { startThread } from "./start-thread.ts";
import { checkpointThread } from "./threads.generated.ts";

/** A driver's error, as it crosses between threads. */
export interface ThreadFailure {
  readonly message: string;
  readonly code?: unknown;
  readonly errcode?: number;
}

/** What the thread answers: a value, what a checkpoint came to, or why it could not. */
export interface ThreadReply {
  readonly value?: unknown;
  readonly failure?: ThreadFailure;
}

/**
 * The thread that does with the file what would block the event loop: it
 * checkpoints the log, and makes and migrates the schema of a file that is
 * opened. Starting it takes some 30 ms of processor time, as much as all the
 * rest of an open, so it is started by the first question.
 */
export class LogThread {
  readonly #source: object;
  readonly #waiting: ((reply: ThreadReply) => void)[] = [];
  #worker: Worker | undefined;
  /** What every question is answered with once the thread has died. */
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

  /** Answered in the order of asking. */
  ask<R extends ThreadReply>(question: object): Promise<R> {
    if (this.#dead !== undefined) return Promise.resolve(this.#dead as R);
    this.#worker ??= this.#start();
    this.#worker.ref();
    return new Promise<R>((resolve) => {
      this.#waiting.push(resolve as (reply: ThreadReply) => void);
      this.#worker?.postMessage(question);
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
    worker.on("message", (reply: ThreadReply) => this.#replied(reply));
    worker.on("error", (error) => this.#ended(error.message));
    worker.on("exit", () => this.#ended("the thread of the log has ended"));
    return worker;
  }

  #ended(message: string): void {
    this.#dead ??= { failure: { message } };
    while (this.#waiting.length > 0) this.#replied(this.#dead);
  }

  #replied(reply: ThreadReply): void {
    const resolve = this.#waiting.shift();
    if (this.#waiting.length === 0) this.#worker?.unref();
    resolve?.(reply);
  }
}

/** Structured clone strips an error of its codes; this gives them back. */
export function threadError(failure: ThreadFailure): Error {
  return Object.assign(new Error(failure.message), failure);
}
