import type { Call } from "./call.ts";

/**
 * A first-in, first-out line of calls, each of which may leave it. Calls that left stay in the
 * array, skipped, until they outnumber the others.
 */
export class CallLine {
  #calls: Call[] = [];
  #head = 0;
  #steppedOut = 0;

  get length(): number {
    return this.#calls.length - this.#head - this.#steppedOut;
  }

  get first(): Call | undefined {
    while (this.#head < this.#calls.length) {
      const call = this.#calls[this.#head];
      if (call?.withdrawn === false) return call;
      this.#advance();
      this.#steppedOut -= 1;
    }
    return undefined;
  }

  push(call: Call): void {
    this.#calls.push(call);
  }

  shift(): Call | undefined {
    const call = this.first;
    if (call !== undefined) this.#advance();
    return call;
  }

  /** Records that the caller of one of these calls gave up. */
  stepOut(call: Call): void {
    call.withdrawn = true;
    this.#steppedOut += 1;
    if (this.#steppedOut > 1_024 && this.#steppedOut > this.length) this.#keep([...this]);
  }

  *[Symbol.iterator](): Generator<Call, void> {
    for (let index = this.#head; index < this.#calls.length; index += 1) {
      const call = this.#calls[index];
      if (call?.withdrawn === false) yield call;
    }
  }

  #advance(): void {
    this.#head += 1;
    // Compacted now and then, so that a long line does not keep its past calls in memory.
    if (this.#head > 1_024 && this.#head * 2 > this.#calls.length) {
      this.#calls = this.#calls.slice(this.#head);
      this.#head = 0;
    }
  }

  #keep(calls: Call[]): void {
    this.#calls = calls;
    this.#head = 0;
    this.#steppedOut = 0;
  }
}
