import { realLater, realSoon } from "../host/timers.ts";
import type { Database } from "../sql/database.ts";
import { overlaid } from "./overlaid.ts";

/**
 * Rounds of the event loop without a call after which nothing more is to
 * come: what is heard of a commit is dealt with in the next, and everything
 * else here takes no time.
 */
const quietRounds = 5;

/** The calls of a database in memory: by them is seen whether anything goes on. */
export class Traffic {
  #open = 0;
  #begun = 0;
  readonly #onCall = new Set<() => void>();

  /** Counts something as a call as long as it lasts. */
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

  /** The database, with its calls counted. */
  over(database: Database): Database {
    return overlaid(database, {
      write: (...call: Parameters<Database["write"]>) => this.during(() => database.write(...call)),
      read: (...call: Parameters<Database["read"]>) => this.during(() => database.read(...call)),
      setUp: (...call: Parameters<Database["setUp"]>) => this.during(() => database.setUp(...call)),
    } as Partial<Database>);
  }

  /** Resolves once there has been none for a while, and nothing else was busy either. */
  async quiet(isBusy: () => boolean): Promise<void> {
    for (let rounds = 0; rounds < quietRounds;) {
      const begun = this.#begun;
      await new Promise<void>(realSoon);
      const isQuiet = this.#open === 0 && this.#begun === begun && !isBusy();
      rounds = isQuiet ? rounds + 1 : 0;
    }
  }

  /** Whether one begins within a time of the machine's. */
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
