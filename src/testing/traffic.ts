import { realLater, realSoon } from "../host/timers.ts";
import type { Database } from "../sql/database.ts";
import { overlaid } from "./overlaid.ts";

/**
 * Rounds of the event loop without a call after which no call will follow. Code handles a commit in
 * the round after it, and nothing else here takes time.
 */
const quietRounds = 5;

/** Counts the calls of a database in memory, which show whether anything is happening. */
export class Traffic {
  #open = 0;
  #begun = 0;
  readonly #onCall = new Set<() => void>();

  /** Counts an action as one call for its duration. */
  async during<T>(act: () => Promise<T>): Promise<T> {
    this.#open += 1;
    this.#begun += 1;
    for (const told of this.#onCall) told();
    try {
      return await act();
    } finally {
      this.#open -= 1;
    }
  }

  /** Wraps the database so that its calls are counted. */
  over(database: Database): Database {
    return overlaid(database, {
      write: (...call: Parameters<Database["write"]>) => this.during(() => database.write(...call)),
      read: (...call: Parameters<Database["read"]>) => this.during(() => database.read(...call)),
      setUp: (...call: Parameters<Database["setUp"]>) => this.during(() => database.setUp(...call)),
    } as Partial<Database>);
  }

  /** Resolves after several rounds without a call in which nothing else was busy. */
  async quiet(isBusy: () => boolean): Promise<void> {
    for (let rounds = 0; rounds < quietRounds;) {
      const begun = this.#begun;
      await new Promise<void>(realSoon);
      const isQuiet = this.#open === 0 && this.#begun === begun && !isBusy();
      rounds = isQuiet ? rounds + 1 : 0;
    }
  }

  /** Resolves to true when a call begins within the given real time. */
  async comesWithin(ms: number): Promise<boolean> {
    const begun = this.#begun;
    return new Promise((resolve) => {
      const end = (): void => {
        this.#onCall.delete(end);
        cancel();
        resolve(this.#begun !== begun);
      };
      const cancel = realLater(ms, end);
      this.#onCall.add(end);
    });
  }
}
