/**
 * The places of a worker: so many runs may go on at once. A run that waits
 * holds none, or parents would starve the children they wait for; when it is
 * woken it asks again, and those who ask again come before anything new.
 */
export class Slots {
  readonly #size: number;
  #taken = 0;
  readonly #asking: (() => void)[] = [];
  #onFree: (() => void) | undefined;

  constructor(size: number) {
    this.#size = size;
  }

  get free(): number {
    return Math.max(0, this.#size - this.#taken - this.#asking.length);
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
    const next = this.#asking.shift();
    if (next !== undefined) return next();
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
