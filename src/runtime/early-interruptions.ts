import type { ExecutionId } from "../model/ids/execution-id.ts";

/** More are not told apart: then every run is looked at. */
const idsMax = 1_000;

/**
 * Pauses and cancellations that are heard of while a worker is being told
 * which runs are its: after the lock has read them, before they are there to
 * be interrupted. They are looked at once the runs are taken up, or what is
 * running would hear of its cancellation only when it next appends.
 */
export class EarlyInterruptions {
  readonly #ids = new Set<ExecutionId>();
  #isAny = false;
  #locking = 0;

  /** Runs something that locks runs and takes them up. */
  async during<T>(lock: () => Promise<T>): Promise<T> {
    this.#locking += 1;
    try {
      return await lock();
    } finally {
      this.#locking -= 1;
      if (this.#locking === 0) {
        this.#ids.clear();
        this.#isAny = false;
      }
    }
  }

  /** Of one run, or of any. */
  hear(id: ExecutionId | undefined): void {
    if (this.#locking === 0) return;
    if (id === undefined || this.#ids.size >= idsMax) this.#isAny = true;
    else this.#ids.add(id);
  }

  /** Whether a run that is taken up may have been interrupted since it was locked. */
  isHeard(id: ExecutionId): boolean {
    return this.#isAny || this.#ids.has(id);
  }
}
