import { HoldfastError } from "../errors.ts";

/** A source of time: whole milliseconds since 1970, UTC. */
export interface Clock {
  now(): number;
  /**
   * Calls `run` once `now()` has reached `instant`, unless the returned function is called first.
   * For an instant in the past `run` is called soon, and never before `wakeAt` has returned. Does
   * not keep the process alive.
   */
  wakeAt(instant: number, run: () => void): () => void;
}

/**
 * Reads the time inside a transaction, once the rows to be judged by it are locked. Waiting for
 * others may take longer than a lease lasts. A retried body reads it again.
 */
export type Now = () => number;

/**
 * Returns the clock's time, and refuses an impossible instant, since leases are judged by it.
 * @throws HoldfastError `OPTION_INVALID`
 */
export function instantOf(now: Now): number {
  const instant = now();
  if (Number.isSafeInteger(instant)) return instant;
  throw new HoldfastError(
    "OPTION_INVALID",
    `A clock must return whole milliseconds since 1970, below 2^53; this one returned ${instant}. Nothing was changed. Fix the clock that you passed.`,
    { option: "clock" },
  );
}

/** A clock that moves only when told, for tests and simulations. */
export interface ManualClock extends Clock {
  /** Moves forward by `ms`. Everything due by then is called on the way, at its own instant. */
  advance(ms: number): void;
  /**
   * Jumps to an instant, also backwards, as a real clock that is set back. A forward jump is an
   * advance.
   */
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
        // Steps to each instant in turn, because the callback may sleep again on the way.
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
      // Placed after sleepers of the same instant, so that they are called in the order of their
      // registration.
      const place = sleepers.findIndex((other) => other.instant > at);
      sleepers.splice(place < 0 ? sleepers.length : place, 0, sleeper);
      // A microtask, which fake timers do not replace.
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
    `A manual clock advances by a whole number of milliseconds, 0 or more; got ${ms}. Use set() to go back.`,
    { ms },
  );
}
