import type { ExecutionId } from "../../model/ids/execution-id.ts";

/** More are not told apart: then every run is looked at. */
const idsMax = 1_000;

/**
 * What is heard of runs while a worker is being told which are its: after the
 * lock has read them, before they are there to be told. It is looked at once
 * the runs are taken up, or what is running would hear of its cancellation, or
 * of a response, only when it next appends.
 */
export class EarlyHints {
  readonly interruptions: Heard = new Heard(() => this.#locking > 0);
  readonly responses: Heard = new Heard(() => this.#locking > 0);
  #locking = 0;

  /** Runs something that locks runs and takes them up. */
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

/** The runs of which something of one kind was heard. */
class Heard {
  readonly #ids = new Set<ExecutionId>();
  readonly #isKept: () => boolean;
  #isAny = false;

  constructor(isKept: () => boolean) {
    this.#isKept = isKept;
  }

  /** Of one run, or of any. */
  add(id: ExecutionId | undefined): void {
    if (!this.#isKept()) return;
    if (id === undefined || this.#ids.size >= idsMax) this.#isAny = true;
    else this.#ids.add(id);
  }

  /** Whether it may be about a run that is taken up. */
  has(id: ExecutionId): boolean {
    return this.#isAny || this.#ids.has(id);
  }

  clear(): void {
    this.#ids.clear();
    this.#isAny = false;
  }
}
