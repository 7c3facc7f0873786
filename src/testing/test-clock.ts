import { manualClock, type Clock } from "../model/time/clock.ts";

/** How long the locks of a test's worker last: nobody waits for them to end, and time that is skipped must not end them. */
export const leaseMs: number = 1_000 * 365 * 86_400_000;
/** What waits for longer waits for the end of a lock. */
const horizonMs = leaseMs / 3;

/** Timers of one process: they all go when it is killed. */
export interface ProcessClock extends Clock {
  cancelAll(): void;
}

/**
 * Time that stands still until it is moved, and knows the next instant that
 * something waits for. What waits in the background is called when time passes
 * it, and is no reason for time to pass.
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

  /** The next instant that something waits for; undefined when nothing does, or for centuries. */
  get next(): number | undefined {
    return this.#earliest([...this.#waiting.values()]);
  }

  /** The same with the instants of schedules. */
  get nextOfAll(): number | undefined {
    return this.#earliest([...this.#waiting.values(), ...this.#recurring.values()]);
  }

  #earliest(instants: readonly number[]): number | undefined {
    let next: number | undefined;
    for (const instant of instants) if (next === undefined || instant < next) next = instant;
    const isNear = next !== undefined && next - this.now() < horizonMs;
    return isNear ? next : undefined;
  }

  /** Moves forward, and calls what is due on the way. Never back. */
  moveTo(instant: number): void {
    if (instant > this.now()) this.#manual.set(instant);
  }

  /**
   * The same time for a process, for what it does in the background, or for
   * schedules: their instants come for ever, so time that passes by itself
   * does not go to them, but who moves it comes to each.
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
