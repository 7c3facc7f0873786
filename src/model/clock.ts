import { HoldfastError } from "./errors.ts";

/** Where time comes from: whole milliseconds since 1970, UTC. */
export interface Clock {
  now(): number;
}

/** A clock that stands still until told; for tests and simulations. */
export interface ManualClock extends Clock {
  /** Moves forward by `ms`. */
  advance(ms: number): void;
  /** Jumps to an instant, backwards too: real clocks are set back. */
  set(instant: number): void;
}

export function manualClock(startInstant: number = 0): ManualClock {
  let instant = wholeMs(startInstant);
  return {
    now: () => instant,
    advance(ms) {
      instant += wholeMs(ms);
    },
    set(next) {
      instant = wholeMs(next);
    },
  };
}

function wholeMs(ms: number): number {
  if (Number.isSafeInteger(ms) && ms >= 0) return ms;
  throw new HoldfastError(
    "OPTION_INVALID",
    `A manual clock moves by whole milliseconds from 0 up; got ${ms}. Use set() to go back.`,
    { ms },
  );
}
