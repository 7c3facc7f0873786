import type { Worker } from "node:worker_threads";
import { later } from "../../../host/timers.ts";
import type { Driver } from "../drivers/drivers.ts";
import { startThread } from "../start-thread.ts";
import { heavyThread } from "../threads.generated.ts";
import type { OpenFile } from "./heavy-call.ts";
import { heavyFailure, readerEnded } from "./heavy-failures.ts";
import type { Failure } from "./heavy-failures.ts";

type Reply = { readonly value: unknown } | { readonly failure: Failure };

interface Request {
  readonly job: string;
  readonly request: object;
  readonly resolve: (value: never) => void;
  readonly reject: (error: unknown) => void;
}

/** The idle time after which the thread is ended, since it costs about 10 MB. */
const idleMs = 10_000;

/**
 * Sends requests to the thread of heavy reads, one at a time. Each is a short snapshot, and long
 * work is many requests, so that several callers take turns. The first request starts the thread.
 *
 * No other thread can interrupt a statement of SQLite: `terminate` was measured to wait for its end
 * (619 ms in a VACUUM INTO of 200 MB). So a caller that gives up is released at once, and the
 * thread takes the next request when it has finished its current snapshot.
 */
export class HeavyRequests {
  readonly #source: object;
  readonly #waiting: Request[] = [];
  readonly #ending = new Set<Promise<void>>();
  #running: Request | undefined;
  #worker: Worker | undefined;
  #cancelIdle: (() => void) | undefined;

  constructor(driver: Driver, file: OpenFile) {
    const { name, modulePath } = driver;
    this.#source = { driver: name, modulePath, ...file };
  }

  ask<T>(job: string, request: object, signal: AbortSignal): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      signal.throwIfAborted();
      const abandon = (): void => {
        const index = this.#waiting.indexOf(asked);
        if (index >= 0) this.#waiting.splice(index, 1);
        reject(signal.reason as Error);
      };
      const settled =
        <V>(settle: (value: V) => void) =>
        (value: V): void => {
          signal.removeEventListener("abort", abandon);
          settle(value);
        };
      const asked: Request = {
        job,
        request,
        resolve: settled(resolve),
        reject: settled(reject),
      };
      signal.addEventListener("abort", abandon, { once: true });
      this.#waiting.push(asked);
      this.#next();
    });
  }

  /** Waits for the current snapshot to end, because only then may the file be released. */
  async close(): Promise<void> {
    this.#end();
    await Promise.all(this.#ending);
  }

  #next(): void {
    if (this.#running !== undefined) return;
    const next = this.#waiting.shift();
    if (next === undefined) {
      this.#worker?.unref();
      this.#cancelIdle ??= later(idleMs, () => this.#end());
      return;
    }
    this.#cancelIdle?.();
    this.#cancelIdle = undefined;
    this.#running = next;
    try {
      this.#worker ??= this.#start();
      this.#worker.ref();
      this.#worker.postMessage({ job: next.job, request: next.request });
    } catch (error) {
      // A request that never reached the thread gets no answer from it; other requests still do.
      this.#finish((request) => request.reject(error));
    }
  }

  #start(): Worker {
    const worker = startThread(heavyThread, this.#source);
    let reason = "it stopped";
    const ended = new Promise<void>((resolve) => {
      worker.on("exit", () => {
        this.#ending.delete(ended);
        resolve();
        if (this.#worker !== worker) return;
        this.#worker = undefined;
        this.#finish((request) => request.reject(readerEnded("thread", reason)));
      });
    });
    this.#ending.add(ended);
    worker.on("error", (error) => (reason = error.message));
    worker.on("message", (reply: Reply) =>
      this.#finish((request) => {
        if ("failure" in reply) request.reject(heavyFailure(reply.failure));
        else request.resolve(reply.value as never);
      }),
    );
    return worker;
  }

  #finish(settle: (request: Request) => void): void {
    const finished = this.#running;
    this.#running = undefined;
    if (finished !== undefined) settle(finished);
    this.#next();
  }

  #end(): void {
    this.#cancelIdle?.();
    this.#cancelIdle = undefined;
    this.#worker?.ref();
    this.#worker?.postMessage({ job: "close" });
    this.#worker = undefined;
  }
}
