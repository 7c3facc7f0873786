import { HoldfastError } from "../errors.ts";

/** Where time comes from: whole milliseconds since 1970, UTC. */
export interface Clock {
  now(): number;
  /**
   * Calls `run` once `now()` has reached `instant`, unless the returned
   * function is called first. An instant that is over already is no exception:
   * `run` is called soon, never before `wakeAt` has returned. Does not keep
   * the process alive.
   */
  wakeAt(instant: number, run: () => void): () => void;
}

/**
 * Tells the time inside a transaction, once what it is judged against is
 * locked: waiting for others may take longer than a lease lasts. A body that
 * runs again asks again.
 */
export type Now = () => number;

/**
 * What a clock says, unless no instant is like that: a lease must not be judged
 * by it. @throws HoldfastError `OPTION_INVALID`
 */
export function instantOf(now: Now): number {
  const instant = now();
  if (Number.isSafeInteger(instant)) return instant;
  throw new HoldfastError(
    "OPTION_INVALID",
    `A clock tells whole milliseconds since 1970, below 2^53; this one says ${instant}. Nothing was changed. Mend the clock that was given.`,
    { option: "clock" },
  );
}

/** A clock that stands still until told; for tests and simulations. */
export interface ManualClock extends Clock {
  /** Moves forward by `ms`. What is due by then is called on the way, each at its instant. */
  advance(ms: number): void;
  /** Jumps to an instant, backwards too: real clocks are set back. Forwards it is an advance. */
  set(instant: number): void;
}

export function manualClock(startInstant: number = 0): ManualClock {
  let instant = wholeMs(startInstant);
  const sleepers: Sleeper[] = [];

  const moveTo = (target: number): void => {
    try {
      for (
        let [first] = sleepers;
        first !== undefined && first.instant <= target;
        [first] = sleepers
      ) {
        sleepers.shift();
        // Stepping to each instant, not past it: what is called may sleep again on the way.
        instant = Math.max(instant, first.instant);
        first.run();
      }
    } finally {
      instant = Math.max(instant, target);
    }
  };

  return {
    now: () => instant,
    advance(ms) {
      moveTo(instant + wholeMs(ms));
    },
    set(next) {
      if (wholeMs(next) < instant) instant = next;
      else moveTo(next);
    },
    wakeAt(at, run) {
      const sleeper: Sleeper = { instant: at, run };
      // After those of the same instant, so that they are called in the order in which they came.
      const place = sleepers.findIndex((other) => other.instant > at);
      sleepers.splice(place < 0 ? sleepers.length : place, 0, sleeper);
      // A microtask that no fake timers take away.
      if (at <= instant) void Promise.resolve().then(() => moveTo(instant));
      return () => {
        const found = sleepers.indexOf(sleeper);
        if (found >= 0) sleepers.splice(found, 1);
      };
    },
  };
}

interface Sleeper {
  readonly instant: number;
  readonly run: () => void;
}

function wholeMs(ms: number): number {
  if (Number.isSafeInteger(ms) && ms >= 0) return ms;
  throw new HoldfastError(
    "OPTION_INVALID",
    `A manual clock moves by whole milliseconds from 0 up; got ${ms}. Use set() to go back.`,
    { ms },
  );
}
