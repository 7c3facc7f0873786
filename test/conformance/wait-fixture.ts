import { expect } from "vitest";
import { manualClock } from "../../src/model/time/clock.ts";
import type { ManualClock } from "../../src/model/time/clock.ts";
import type { Database } from "../../src/sql/database.ts";
import { withPlace } from "./backend.ts";
import type { Backend, Place } from "./backend.ts";

/** A database on a manual clock, both watched for what a wait leaves behind. */
export interface Fixture {
  readonly place: Place;
  readonly database: Database;
  readonly watched: Watched;
  readonly clock: CountingClock;
}

export type InFixture = (body: (fixture: Fixture) => Promise<void>) => () => Promise<void>;

/** Wraps test bodies. After each nobody listens or sleeps any more, nobody had to hear of everything, and no poll had to help. */
export function waitFixture(backend: Backend): InFixture {
  return (body) => () =>
    withPlace(backend, async (place) => {
      const clock = countingClock(1_000);
      const opened = await place.open({ clock, isWithoutPoll: true });
      const watched = new Watched(opened);
      await body({ place, database: watched.database, watched, clock });
      const { listeners, unfiltered } = watched;
      const { sleepers } = clock;
      const { polls } = opened.stats();
      expect({ listeners, unfiltered, sleepers, polls }).toEqual({
        listeners: 0,
        unfiltered: 0,
        sleepers: 0,
        polls: 0,
      });
    });
}

/** A manual clock that knows how many sleep on it. */
export interface CountingClock extends ManualClock {
  readonly sleepers: number;
}

export function countingClock(start: number): CountingClock {
  const clock = manualClock(start);
  const asleep = new Set<object>();
  return {
    ...clock,
    get sleepers() {
      return asleep.size;
    },
    wakeAt(instant, run) {
      const sleeper = {};
      asleep.add(sleeper);
      const cancel = clock.wakeAt(instant, () => {
        asleep.delete(sleeper);
        run();
      });
      return () => {
        asleep.delete(sleeper);
        cancel();
      };
    },
  };
}

/** A database that knows how many listen to it, and whether it is being read. */
class Watched {
  readonly database: Database;
  listeners = 0;
  /** Subscriptions that asked for all changes: each costs every write something. */
  unfiltered = 0;
  reads = 0;
  #reading = 0;

  constructor(database: Database) {
    const own: Readonly<Record<string | symbol, unknown>> = {
      subscribe: (...given: Parameters<Database["subscribe"]>) => {
        const stop = database.subscribe(...given);
        this.listeners += 1;
        if (given[1] === undefined) this.unfiltered += 1;
        return () => {
          this.listeners -= 1;
          stop();
        };
      },
      read: (...call: Parameters<Database["read"]>) => {
        this.#reading += 1;
        return database.read(...call).finally(() => {
          this.reads += 1;
          this.#reading -= 1;
        });
      },
    };
    this.database = new Proxy(database, {
      get(target, name) {
        const found: unknown = own[name] ?? Reflect.get(target, name, target);
        return typeof found === "function" ? (found.bind(target) as unknown) : found;
      },
    });
  }

  /** Resolves once whoever waits has looked and gone to sleep. */
  async asleep(): Promise<void> {
    do await turn();
    while (this.reads === 0 || this.#reading > 0);
  }
}

/** One turn of the event loop: whatever was ready has run. */
function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Whether a promise is still open after a turn of the event loop. */
export async function isOpen(promise: Promise<unknown>): Promise<boolean> {
  const open = Symbol("open");
  return (await Promise.race([promise, turn().then(() => open)])) === open;
}
