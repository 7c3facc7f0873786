import { monotonicMs } from "../../../host/timers.ts";
import { tracedFailure } from "../../../model/traced-failure.ts";
import type { Callable } from "../../callable.ts";

/** A write that waits for its transaction, runs in it, and is then settled. */
export class Call {
  readonly body: Callable;
  readonly resolve: (value: unknown) => void;
  /** The time of queueing, on the monotonic clock. */
  readonly sinceMs: number = monotonicMs();
  /**
   * The time at which the transaction took it, and the duration of its body there, both of its last
   * run.
   */
  takenMs = 0;
  ranMs = 0;
  /** Stops listening to the caller's signal and timeout. */
  stopWaiting: (() => void) | undefined;
  /** Only a queued call can be given up. A call that was put back is queued again. */
  state: "new" | "queued" | "taken" | "cancelled" = "new";

  constructor(body: Callable, resolve: (value: unknown) => void) {
    this.body = body;
    this.resolve = resolve;
  }

  reject(error: unknown): void {
    this.resolve(tracedFailure(error));
  }

  /** Fails a call whose caller may still be waiting. */
  fail(error: unknown): void {
    this.stopWaiting?.();
    this.reject(error);
  }
}

/** A first-in, first-out queue, from which a caller that gives up can remove its call. */
export class CallQueue {
  #calls: Call[] = [];
  #head = 0;
  #cancelled = 0;

  get length(): number {
    return this.#calls.length - this.#head - this.#cancelled;
  }

  push(call: Call): void {
    call.state = "queued";
    this.#calls.push(call);
  }

  /**
   * Cancels a call. It stays in place until its turn, but is not counted.
   * @returns false when a batch has taken the call: then it happens.
   */
  cancel(call: Call): boolean {
    if (call.state !== "queued") return false;
    call.state = "cancelled";
    this.#cancelled += 1;
    return true;
  }

  shift(): Call | undefined {
    while (this.#head < this.#calls.length) {
      const call = this.#calls[this.#head];
      this.#head += 1;
      // Compacted now and then, so that shifting stays cheap in a long queue.
      if (this.#head > 1_024 && this.#head * 2 > this.#calls.length) {
        this.#calls = this.#calls.slice(this.#head);
        this.#head = 0;
      }
      if (call?.state === "queued") {
        call.state = "taken";
        return call;
      }
      this.#cancelled -= 1;
    }
    return undefined;
  }

  /** Returns the calls that a batch had taken to their old place. */
  unshift(calls: readonly Call[]): void {
    if (calls.length === 0) return;
    for (const call of calls) call.state = "queued";
    this.#calls = [...calls, ...this.#calls.slice(this.#head)];
    this.#head = 0;
  }

  /** Takes all calls that match `which`, in order. */
  takeWhere(which: (call: Call) => boolean): readonly Call[] {
    const taken: Call[] = [];
    const kept: Call[] = [];
    for (let call = this.shift(); call !== undefined; call = this.shift())
      (which(call) ? taken : kept).push(call);
    this.unshift(kept);
    return taken;
  }
}
