import { later } from "../../../host/timers.ts";

/**
 * Time is counted in steps, so that time in which this process was busy or suspended does not
 * count.
 */
const stepsPerTimeout = 5;

/** The duration of one step of a watch. */
export function stepOf(timeoutMs: number): number {
  return Math.max(1, Math.ceil(timeoutMs / stepsPerTimeout));
}

/**
 * Notices when a connection's statement has had no answer within the time limit. It costs a
 * statement two assignments: one timer per connection checks now and then, and rests while no
 * statement is pending.
 */
export class AnswerWatch {
  readonly #stepMs: number;
  readonly #bytesRead: () => number;
  readonly #onOverdue: (timeouts: number) => void;
  #cancelStep: (() => void) | undefined;
  #isAsking = false;
  /** The number of the last statement sent; each has its own. */
  #statement = 0;
  /** The statement and the bytes read at the last step, and the steps since without a change. */
  #found = { statement: 0, bytes: 0 };
  #steps = 0;

  /** `onOverdue` receives the number of time limits that have passed, each time one more has. */
  constructor(timeoutMs: number, bytesRead: () => number, onOverdue: (timeouts: number) => void) {
    this.#stepMs = stepOf(timeoutMs);
    this.#bytesRead = bytesRead;
    this.#onOverdue = onOverdue;
  }

  /** The statement that waits for its answer. */
  get pending(): number | undefined {
    return this.#isAsking ? this.#statement : undefined;
  }

  asked(): void {
    this.#statement += 1;
    this.#isAsking = true;
    this.#cancelStep ??= later(this.#stepMs, () => this.#step());
  }

  answered(): void {
    this.#isAsking = false;
  }

  stop(): void {
    this.#isAsking = false;
    this.#cancelStep?.();
    this.#cancelStep = undefined;
  }

  #step(): void {
    this.#cancelStep = undefined;
    if (!this.#isAsking) return;
    this.#cancelStep = later(this.#stepMs, () => this.#step());
    const { statement, bytes } = this.#found;
    const bytesRead = this.#bytesRead();
    if (statement !== this.#statement || bytes !== bytesRead) {
      this.#found = { statement: this.#statement, bytes: bytesRead };
      this.#steps = 0;
      return;
    }
    this.#steps += 1;
    if (this.#steps % stepsPerTimeout === 0) this.#onOverdue(this.#steps / stepsPerTimeout);
  }
}
