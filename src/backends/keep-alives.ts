import { keepAlive } from "../host/timers.ts";

/** What keeps the process alive for one database, until that is closed. */
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

  /** Nobody waits for a database that is closed, so nothing of it keeps the process. */
  end(): void {
    for (const release of this.#releases) release();
  }
}
