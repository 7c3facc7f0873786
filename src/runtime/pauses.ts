import { setMaxListeners } from "node:events";
import type { Clock } from "../model/time/clock.ts";
import { isPassing } from "./failures.ts";

const firstMs = 10;
const longestMs = 1_000;

/** Waits before a retry: 10 ms, doubling up to a second. An abort ends the wait. */
export function pauseBefore(clock: Clock, failures: number, signal: AbortSignal): Promise<void> {
  const ms = Math.min(firstMs * 2 ** Math.min(failures, 10), longestMs);
  return pause(clock, ms, signal);
}

export function pause(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  // Any number of runs may pause at once, as while the database is down: Node takes more than
  // ten listeners for a leak.
  setMaxListeners(0, signal);
  return new Promise((resolve) => {
    const end = (): void => {
      cancel();
      signal.removeEventListener("abort", end);
      resolve();
    };
    const cancel = clock.wakeAt(clock.now() + ms, end);
    signal.addEventListener("abort", end, { once: true });
  });
}

/** Repeats an operation that may be repeated until its outcome is known. An abort ends the repetition. */
export async function repeated<T>(
  clock: Clock,
  signal: AbortSignal,
  act: () => Promise<T>,
): Promise<T> {
  for (let failures = 0; ; failures += 1)
    try {
      return await act();
    } catch (error) {
      if (!isPassing(error) || signal.aborted) throw error;
      await pauseBefore(clock, failures, signal);
    }
}

/** Waits for a promise, at most until an instant. Returns true if it settled, and rejects as it does. */
export function isDoneBy(clock: Clock, instant: number, work: Promise<unknown>): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const cancel = clock.wakeAt(instant, () => resolve(false));
    work
      .then(() => resolve(true), reject)
      .finally(() => {
        cancel();
      });
  });
}
