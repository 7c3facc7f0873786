import { keepAlive } from "../host/timers.ts";

/** The holds that keep the process alive for one database until it is closed. */
export class KeepAlives {
  readonly #releases = new Set<() => void>();

  hold(): () => void {
    const release = keepAlive();
    const end = (): void => {
      this.#releases.delete(end);
      release();
    };
    this.#releases.add(end);
    return end;
  }

  /** Releases every hold: a closed database must not keep the process alive. */
  end(): void {
    for (const release of this.#releases) release();
  }
}
