/**
 * The bodies of steps and activities that have begun and not ended, here and
 * now. The runtime does not need to know; who moves time in place of the
 * machine does, since nothing may come to its deadline while code runs.
 */
export class RunningBodies {
  readonly #running = new Map<object, string>();
  #onEnd: (() => void) | undefined;

  get size(): number {
    return this.#running.size;
  }

  /** What each that runs is known by, so that who waits for one can tell it from the next. */
  get all(): Iterable<object> {
    return this.#running.keys();
  }

  /** One more runs, under an idempotency key. Returns the way to say that it has ended. */
  begin(key: string): () => void {
    const body = {};
    this.#running.set(body, key);
    return () => this.#remove(body);
  }

  /** Those of a key do nothing but wait to be told to stop: they count no longer. */
  waits(key: string): void {
    for (const [body, of] of this.#running) if (of === key) this.#remove(body);
  }

  /** Resolves when one has ended. */
  ended(): Promise<void> {
    return new Promise((resolve) => {
      const before = this.#onEnd;
      this.#onEnd = () => {
        before?.();
        resolve();
      };
    });
  }

  #remove(body: object): void {
    if (!this.#running.delete(body)) return;
    const told = this.#onEnd;
    this.#onEnd = undefined;
    told?.();
  }
}
