import type { ExecutionId } from "../../model/ids/execution-id.ts";

/** The most ids that are kept apart. Beyond that, every run is checked. */
const idsMax = 1_000;

/**
 * Collects hints about runs that a lock has read and that the worker has not adopted yet. The
 * worker checks them once it adopts the runs. Otherwise a running run would learn of its
 * cancellation, or of a response, only at its next append.
 */
export class HintsWhileLocking {
  readonly interruptions: Heard = new Heard(() => this.#locking > 0);
  readonly responses: Heard = new Heard(() => this.#locking > 0);
  #locking = 0;

  /** Collects hints during a call that locks and adopts runs. */
  async during<T>(lock: () => Promise<T>): Promise<T> {
    this.#locking += 1;
    try {
      return await lock();
    } finally {
      this.#locking -= 1;
      if (this.#locking === 0) {
        this.interruptions.clear();
        this.responses.clear();
      }
    }
  }
}

/** The runs for which hints of one kind arrived. */
class Heard {
  readonly #ids = new Set<ExecutionId>();
  readonly #isKept: () => boolean;
  #isAny = false;

  constructor(isKept: () => boolean) {
    this.#isKept = isKept;
  }

  /** Adds a hint about one run, or about any run. */
  add(id: ExecutionId | undefined): void {
    if (!this.#isKept()) return;
    if (id === undefined || this.#ids.size >= idsMax) this.#isAny = true;
    else this.#ids.add(id);
  }

  /** True if a hint may concern the adopted run. */
  has(id: ExecutionId): boolean {
    return this.#isAny || this.#ids.has(id);
  }

  clear(): void {
    this.#ids.clear();
    this.#isAny = false;
  }
}
