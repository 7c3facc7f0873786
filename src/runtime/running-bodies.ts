/**
 * The bodies of steps and activities that are running in this process. The runtime does not
 * need them. A test clock does, since no deadline may come while code runs.
 */
export class RunningBodies {
  readonly #running = new Map<object, string>();
  #onEnd: (() => void) | undefined;

  get size(): number {
    return this.#running.size;
  }

  /** One object per running body, so that a waiter can tell a body from the next. */
  get all(): Iterable<object> {
    return this.#running.keys();
  }

  /** Adds a body with an idempotency key. Returns a function that reports its end. */
  begin(key: string): () => void {
    const body = {};
    this.#running.set(body, key);
    return () => this.#remove(body);
  }

  /** The bodies of a key only wait to be told to stop: they no longer count. */
  waits(key: string): void {
    for (const [body, of] of this.#running) if (of === key) this.#remove(body);
  }

  /** Resolves when a body has ended. */
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
