import type { Clock } from "../model/time/clock.ts";
import { later, monotonicMs } from "./timers.ts";

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
/** What the machine had counted when `latest` was told. */
let countedMs = 0;

/**
 * The machine's clock. When it is set back, time goes on here at half its pace
 * until the machine has caught up: code that saw an instant never sees an
 * earlier one, and what is to happen in a second happens in two. Standing still
 * would hold up every timer for as long as the clock was set back, and going on
 * at full pace would leave this process ahead of the date for ever.
 */
export const systemClock: Clock = {
  now() {
    const machineMs = Date.now();
    const counted = monotonicMs();
    // The count begins anew where a test replaces the timers.
    const passedMs = Math.max(0, counted - countedMs);
    countedMs = counted;
    latest = machineMs < latest ? latest + passedMs / 2 : machineMs;
    return Math.floor(latest);
  },

  wakeAt(instant, run) {
    let cancel = (): void => undefined;
    const sleep = (): void => {
      const leftMs = Math.max(0, instant - systemClock.now());
      // Where the machine is behind, twice as long, or until it is there.
      const behindMs = Math.max(0, latest - Date.now());
      const waitMs = leftMs + Math.min(leftMs, behindMs);
      cancel = later(Math.min(waitMs, sleepMsMax), () =>
        // A timer may also fire a moment early.
        systemClock.now() < instant ? sleep() : run(),
      );
    };
    sleep();
    return () => cancel();
  },
};
