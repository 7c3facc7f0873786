import type { Clock } from "../../../model/time/clock.ts";

/** Lets a closing worker wait until no run is in memory or on its way there. */
export class UntilEmpty {
  readonly #clock: Clock;
  readonly #isEmpty: () => boolean;
  #loading = 0;
  #onEmpty: (() => void) | undefined;

  constructor(clock: Clock, isEmpty: () => boolean) {
    this.#clock = clock;
    this.#isEmpty = isEmpty;
  }

  /** Counts a run as on its way into memory until the promise settles. */
  async during(load: Promise<void>): Promise<void> {
    this.#loading += 1;
    await load;
    this.#loading -= 1;
    this.tell();
  }

  /** Resolves the wait if the last run has left memory. */
  tell(): void {
    if (this.#isSo()) this.#onEmpty?.();
  }

  /** Resolves when no run is left, or at the instant. */
  by(instant: number): Promise<void> {
    if (this.#isSo()) return Promise.resolve();
    return new Promise((resolve) => {
      const cancel = this.#clock.wakeAt(instant, resolve);
      this.#onEmpty = () => {
        cancel();
        resolve();
      };
    });
  }

  #isSo(): boolean {
    return this.#loading === 0 && this.#isEmpty();
  }
}
