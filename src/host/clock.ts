import type { Clock } from "../model/clock.ts";

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
};
