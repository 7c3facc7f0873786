/**
 * The places of a worker: so many runs may go on at once. A run that waits
 * holds none, or parents would starve the children they wait for; when it is
 * woken it asks again, and those who ask again come before anything new.
 */
export class Slots {
  readonly #size: number;
  #taken = 0;
  /** Those before `#next` have been given theirs; taking each off the front would move all the others. */
  #asking: (() => void)[] = [];
  #next = 0;
  #given = 0;
  #isGiving = false;
  #onFree: (() => void) | undefined;

  constructor(size: number) {
    this.#size = size;
  }

  get free(): number {
    const asking = this.#asking.length - this.#next;
    return Math.max(0, this.#size - this.#taken - asking);
  }

  /** For something new. The caller has seen that one is free. */
  take(): void {
    this.#taken += 1;
  }

  /** Calls back once there is a place, at once if there is one. */
  again(run: () => void): void {
    if (this.#taken < this.#size) {
      this.#taken += 1;
      run();
    } else this.#asking.push(run);
  }

  give(): void {
    this.#given += 1;
    // Those who need theirs no more give it on at once: thousands of them inside each other would not fit the stack.
    if (this.#isGiving) return;
    this.#isGiving = true;
    try {
      for (; this.#given > 0; this.#given -= 1) this.#giveOne();
    } finally {
      this.#isGiving = false;
    }
  }

  #giveOne(): void {
    const next = this.#asking[this.#next];
    if (next !== undefined) {
      this.#next += 1;
      if (this.#next === this.#asking.length) {
        this.#asking = [];
        this.#next = 0;
      }
      return next();
    }
    this.#taken -= 1;
    const wake = this.#onFree;
    this.#onFree = undefined;
    wake?.();
  }

  /** Resolves when a place is free. */
  freed(signal: AbortSignal): Promise<void> {
    if (this.free > 0 || signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const end = (): void => {
        signal.removeEventListener("abort", end);
        resolve();
      };
      this.#onFree = end;
      signal.addEventListener("abort", end, { once: true });
    });
  }
}
