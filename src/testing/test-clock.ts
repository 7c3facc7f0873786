import { manualClock, type Clock } from "../model/time/clock.ts";

/**
 * Lease of a test's worker: a thousand years, so that skipped time does not expire it. No other
 * worker waits for it.
 */
export const leaseMs: number = 1_000 * 365 * 86_400_000;
/** A longer wait is a wait for the end of a lease. */
const horizonMs = leaseMs / 3;

/** Timers of one process, all cancelled when it is killed. */
export interface ProcessClock extends Clock {
  cancelAll(): void;
}

/**
 * A clock that stands still until it is moved, and knows the next instant that something waits for.
 * Moving past a background timer fires it, but no background timer makes time move.
 */
export class TestClock {
  readonly #manual: ReturnType<typeof manualClock>;
  readonly #waiting = new Map<object, number>();
  readonly #recurring = new Map<object, number>();

  constructor(startInstant: number) {
    this.#manual = manualClock(startInstant);
  }

  now(): number {
    return this.#manual.now();
  }

  /**
   * The next instant that something waits for; undefined when there is none, or none for centuries.
   */
  get next(): number | undefined {
    return this.#earliest([...this.#waiting.values()]);
  }

  /** The next instant, including those of schedules. */
  get nextOfAll(): number | undefined {
    return this.#earliest([...this.#waiting.values(), ...this.#recurring.values()]);
  }

  #earliest(instants: readonly number[]): number | undefined {
    let next: number | undefined;
    for (const instant of instants) if (next === undefined || instant < next) next = instant;
    const isNear = next !== undefined && next - this.now() < horizonMs;
    return isNear ? next : undefined;
  }

  /** Moves forward and fires the timers due on the way. Never moves back. */
  moveTo(instant: number): void {
    if (instant > this.now()) this.#manual.set(instant);
  }

  /**
   * Timers of a process, of its background work, or of its schedules. The instants of schedules
   * never end. So automatic skipping ignores them, but moving time by hand stops at each of them.
   */
  timers(use: "process" | "background" | "schedules"): ProcessClock {
    const cancels = new Set<() => void>();
    return {
      now: () => this.#manual.now(),
      wakeAt: (instant, run) => {
        const waiting = {};
        const end = (): void => {
          this.#waiting.delete(waiting);
          this.#recurring.delete(waiting);
          cancels.delete(cancel);
        };
        const cancelTimer = this.#manual.wakeAt(instant, () => {
          end();
          run();
        });
        const cancel = (): void => {
          end();
          cancelTimer();
        };
        cancels.add(cancel);
        if (use === "process") this.#waiting.set(waiting, instant);
        if (use === "schedules") this.#recurring.set(waiting, instant);
        return cancel;
      },
      cancelAll() {
        for (const cancel of cancels) cancel();
      },
    };
  }
}
