import type { Clock } from "../../../model/time/clock.ts";

/** Lets a worker that closes wait until no run is in memory, or on its way there. */
export class Emptied {
  readonly #clock: Clock;
  readonly #isEmpty: () => boolean;
  #loading = 0;
  #onEmpty: (() => void) | undefined;

  constructor(clock: Clock, isEmpty: () => boolean) {
    this.#clock = clock;
    this.#isEmpty = isEmpty;
  }

  /** A run is on its way into memory for as long as this takes. */
  async during(load: Promise<void>): Promise<void> {
    this.#loading += 1;
    await load;
    this.#loading -= 1;
    this.tell();
  }

  /** One may have been the last. */
  tell(): void {
    if (this.#isSo()) this.#onEmpty?.();
  }

  /** Resolves when none is left, or the instant has come. */
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
