import type { Clock } from "../model/time/clock.ts";
import { later, monotonicMs } from "./timers.ts";

/**
 * The longest sleep before the clock is read again. Timers count elapsed time, not the date. They
 * fall behind while the machine is suspended, or when its clock is set forward.
 */
const sleepMsMax = 60_000;

/** The time that the machine reports now, even when it reported a later one before. */
export function machineTime(): number {
  return Date.now();
}

let latest = 0;
/** The monotonic count at the last update of `latest`. */
let countedMs = 0;

/**
 * The machine's clock, which never goes back. After the machine's clock is set back, this one runs
 * at half pace until the machine has caught up. Code that saw an instant never sees an earlier one,
 * and a wait of one second takes two. Standing still would delay every timer by the whole
 * correction. Running at full pace would leave this process ahead of the date forever.
 */
export const systemClock: Clock = {
  now() {
    const machineMs = Date.now();
    const counted = monotonicMs();
    // The count restarts when a test replaces the timers.
    const passedMs = Math.max(0, counted - countedMs);
    countedMs = counted;
    latest = machineMs < latest ? latest + passedMs / 2 : machineMs;
    return Math.floor(latest);
  },

  wakeAt(instant, run) {
    let cancel = (): void => undefined;
    const sleep = (): void => {
      const leftMs = Math.max(0, instant - systemClock.now());
      // A clock that is ahead of the machine's runs at half pace until the machine catches up.
      const behindMs = Math.max(0, latest - Date.now());
      const waitMs = leftMs + Math.min(leftMs, behindMs);
      cancel = later(Math.min(waitMs, sleepMsMax), () =>
        // A timer may fire slightly early.
        systemClock.now() < instant ? sleep() : run(),
      );
    };
    sleep();
    return () => cancel();
  },
};
