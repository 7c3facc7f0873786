import type { ExecutionId } from "../../../model/ids/execution-id.ts";
import { readStandings, type ExecutionStanding } from "../../../stores/execution/read/standings.ts";
import { repeated } from "../../pauses.ts";
import type { WorkerParts } from "../worker-parts.ts";

/** A run that a worker has in memory. */
interface Watched {
  readonly id: ExecutionId;
  readonly key: number;
}

/** The most keys that one statement checks. */
const keysMax = 1_000;

/**
 * Checks all runs in memory after a change without a known key: an app that writes to its own
 * tables reports only that it wrote. All runs are checked together, and once for all changes
 * that came in between.
 */
export class UnnamedChanges {
  readonly #parts: WorkerParts;
  readonly #watched: () => Iterable<Watched>;
  readonly #found: (standing: ExecutionStanding) => void;
  #isLooking = false;
  #isAsked = false;

  constructor(
    parts: WorkerParts,
    watched: () => Iterable<Watched>,
    found: (standing: ExecutionStanding) => void,
  ) {
    this.#parts = parts;
    this.#watched = watched;
    this.#found = found;
  }

  async look(): Promise<void> {
    this.#isAsked = true;
    if (this.#isLooking) return;
    this.#isLooking = true;
    try {
      while (this.#isAsked) {
        this.#isAsked = false;
        await this.#lookOnce();
      }
    } catch {
      // The next append or lock of each run finds out.
    } finally {
      this.#isLooking = false;
    }
  }

  async #lookOnce(): Promise<void> {
    const { context, signal } = this.#parts;
    const { clock, database, store } = context;
    const keys = Array.from(this.#watched(), ({ key }) => key);
    for (let from = 0; from < keys.length; from += keysMax) {
      const some = keys.slice(from, from + keysMax);
      const standings = await repeated(clock, signal, () =>
        database.read(readStandings(store), some),
      );
      for (const standing of standings) this.#found(standing);
    }
  }
}
