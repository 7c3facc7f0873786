import { monotonicMs } from "../../../host/timers.ts";
import { tracedFailure } from "../../../model/traced-failure.ts";
import type { Callable } from "../../callable.ts";

/** A write that waits for its transaction, runs in it, and is then settled. */
export class Call {
  readonly body: Callable;
  readonly resolve: (value: unknown) => void;
  /** When it was queued, on the monotonic clock. */
  readonly sinceMs: number = monotonicMs();
  /** Stops listening to the caller's signal and timeout. */
  stopWaiting: (() => void) | undefined;
  /** Only a queued call can be given up; one that was put back is queued again. */
  state: "new" | "queued" | "taken" | "cancelled" = "new";

  constructor(body: Callable, resolve: (value: unknown) => void) {
    this.body = body;
    this.resolve = resolve;
  }

  reject(error: unknown): void {
    this.resolve(tracedFailure(error));
  }

  /** Rejects a call that may still be waited for. */
  fail(error: unknown): void {
    this.stopWaiting?.();
    this.reject(error);
  }
}

/** First in, first out, with removal of those who gave up. */
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
   * A cancelled call stays in place, not counted, until its turn.
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

  /** Gives back what a batch had taken, in its old place. */
  unshift(calls: readonly Call[]): void {
    if (calls.length === 0) return;
    for (const call of calls) call.state = "queued";
    this.#calls = [...calls, ...this.#calls.slice(this.#head)];
    this.#head = 0;
  }

  /** Takes all calls that `which` picks, in order. */
  takeWhere(which: (call: Call) => boolean): readonly Call[] {
    const taken: Call[] = [];
    const kept: Call[] = [];
    for (let call = this.shift(); call !== undefined; call = this.shift())
      (which(call) ? taken : kept).push(call);
    this.unshift(kept);
    return taken;
  }
}
