import type { Clock } from "../model/time/clock.ts";
import { later } from "./timers.ts";

/**
 * Timers count time that has passed, not the date: while a machine is
 * suspended or its clock is set forward they fall behind. So nobody sleeps
 * longer than this without looking.
 */
const sleepMsMax = 60_000;

/** What the machine says that it is, whatever it said before. */
export function machineTime(): number {
  return Date.now();
}

let latest = 0;

/**
 * The machine's clock. When it is set back, time stands still here until it
 * has caught up: code that saw an instant never sees an earlier one.
 */
export const systemClock: Clock = {
  now() {
    latest = Math.max(latest, Date.now());
    return latest;
  },

  wakeAt(instant, run) {
    let cancel = (): void => undefined;
    const sleep = (): void => {
      // From the machine's time: counted from `now()`, which may be standing
      // still, the rest would look shorter than it is.
      const leftMs = systemClock.now() >= instant ? 0 : instant - Date.now();
      cancel = later(Math.min(leftMs, sleepMsMax), () =>
        // A timer may also fire a moment early.
        systemClock.now() < instant ? sleep() : run(),
      );
    };
    sleep();
    return () => cancel();
  },
};
