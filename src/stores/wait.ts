import type { Clock } from "../model/time/clock.ts";
import { durationMs } from "../model/time/durations.ts";
import { HoldfastError } from "../model/errors.ts";
import { tracedFailure } from "../model/traced-failure.ts";
import { givenSignal } from "../model/shape.ts";
import type { Database, Interest, WaitOptions } from "../sql/database.ts";

/** What a look at the database found. */
type Look<T> =
  | { readonly isThere: true; readonly value: T }
  /**
   * Not yet. `again` is when to look even if nobody says that something has
   * changed; `interests` are fewer than before, since the look has found out
   * what exactly is waited for.
   */
  | {
      readonly isThere: false;
      readonly again?: number | undefined;
      readonly interests?: readonly Interest[] | undefined;
    };

export interface Awaited<T> {
  /** Named in errors, such as "the result of execution order-42". */
  readonly what: string;
  /** The changes after which a look could find something new. */
  readonly interests: readonly Interest[];
  readonly look: () => Promise<Look<T>>;
  /** A look that writes is waited for however long it takes: what it has done must be known. */
  readonly writes?: boolean;
  /** On which instants and the timeout are counted; defaults to the database's. */
  readonly clock?: Clock;
}

/**
 * Waits until a look finds what is awaited. Listens first and then looks, so
 * that nothing can happen unnoticed in between; looks again after a relevant
 * change, after anything that cannot be told exactly, and at the instant that
 * the last look named. One look at a time: whatever is heard during one makes
 * one more. Between looks nothing runs but what keeps the process alive, and
 * afterwards nothing is left.
 *
 * Looks at least once, so what is there already is found with a timeout of 0
 * too. An abort ends the wait at once; a timeout only after a last look, since
 * what that finds is worth more than the error. A database that does not answer
 * is given a second for it, or a wait for three would take as long as its
 * connection is tried.
 *
 * @throws HoldfastError `ABORTED`, `DEADLINE_EXCEEDED`, `DATABASE_CLOSED`, and
 *   whatever a look throws: retrying that is for a caller that knows why it failed.
 */
export async function waitUntil<T>(
  database: Database,
  awaited: Awaited<T>,
  options: WaitOptions = {},
): Promise<T> {
  const { what, clock = database.clock } = awaited;
  const { signal } = options;
  givenSignal(signal);
  const deadline = deadlineOf(clock, options);
  if (signal?.aborted === true) throw aborted(what, signal);
  const wakeUp = new WakeUp(clock);
  const listening = new Listening(database, wakeUp, awaited.interests);
  const release = database.keepAlive();
  let stopListening = (): void => undefined;
  try {
    return await new Promise<T>((resolve) => {
      if (signal !== undefined) {
        const onAbort = (): void => {
          resolve(tracedFailure(aborted(what, signal)));
          // Ends the sleep, and with it the loop and its timer.
          wakeUp.ring();
        };
        signal.addEventListener("abort", onAbort, { once: true });
        stopListening = () => signal.removeEventListener("abort", onAbort);
      }
      lookUntilThere({ ...awaited, clock }, wakeUp, listening, deadline, signal).then(
        resolve,
        (error: unknown) => resolve(tracedFailure(error)),
      );
    });
  } finally {
    listening.end();
    stopListening();
    release();
  }
}

/** Sleeps until an instant, or until the signal aborts. Keeps the process alive, as every wait does. */
export function sleepUntil(
  database: Database,
  clock: Clock,
  instant: number,
  signal: AbortSignal,
): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  const release = database.keepAlive();
  return new Promise((resolve) => {
    const end = (): void => {
      cancel();
      signal.removeEventListener("abort", end);
      release();
      resolve();
    };
    const cancel = clock.wakeAt(instant, end);
    signal.addEventListener("abort", end);
  });
}

async function lookUntilThere<T>(
  { what, look, clock, writes }: Awaited<T> & { readonly clock: Clock },
  wakeUp: WakeUp,
  listening: Listening,
  deadline: Deadline,
  signal: AbortSignal | undefined,
): Promise<T> {
  for (;;) {
    if (signal?.aborted === true) throw aborted(what, signal);
    wakeUp.hush();
    const found = await (writes === true ? look() : inTime(look(), clock, what, deadline));
    if (found.isThere) return found.value;
    if (found.interests !== undefined) listening.narrow(found.interests);
    if (deadline.isOver()) throw deadlineExceeded(what, deadline.timeoutMs);
    await wakeUp.rung(Math.min(found.again ?? never, deadline.instant));
  }
}

const never = Number.POSITIVE_INFINITY;
/** So long a look may go on when the time of its wait is over. */
const lateLookMs = 1_000;

/** A look, unless it takes far longer than the wait may. */
function inTime<T>(
  looking: Promise<T>,
  clock: Clock,
  what: string,
  { instant, timeoutMs }: Deadline,
): Promise<T> {
  if (instant === never) return looking;
  return new Promise((resolve, reject) => {
    const cancel = clock.wakeAt(Math.max(instant, clock.now()) + lateLookMs, () =>
      reject(unanswered(what, timeoutMs)),
    );
    looking.then(resolve, reject).finally(cancel);
  });
}

interface Deadline {
  readonly instant: number;
  readonly timeoutMs: number;
  readonly isOver: () => boolean;
}

function deadlineOf(clock: Clock, { timeout }: WaitOptions): Deadline {
  const timeoutMs = timeout === undefined ? never : durationMs(timeout, "timeout");
  const instant = clock.now() + timeoutMs;
  return { instant, timeoutMs, isOver: () => clock.now() >= instant };
}

/** Wakes the one who sleeps until it rings, and remembers a ring that found nobody asleep. */
class WakeUp {
  readonly #clock: Clock;
  #hasRung = false;
  #wake: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  ring(): void {
    this.#hasRung = true;
    this.#wake?.();
  }

  /** Forgets the rings so far: what they told of will be seen by the look that follows. */
  hush(): void {
    this.#hasRung = false;
  }

  /** Resolves when it rings or has rung, or the instant has come. */
  rung(instant: number): Promise<void> {
    if (this.#hasRung) return Promise.resolve();
    return new Promise((resolve) => {
      let cancelTimer = (): void => undefined;
      this.#wake = () => {
        this.#wake = undefined;
        cancelTimer();
        resolve();
      };
      if (instant !== never) cancelTimer = this.#clock.wakeAt(instant, this.#wake);
    });
  }
}

/** Rings at whatever a look may have to do with. */
class Listening {
  readonly #database: Database;
  // A closing database rings too: the look that follows is refused with the
  // reason, so closing needs no case of its own here.
  readonly #ring: () => void;
  #stop: () => void;
  #hasEnded = false;

  constructor(database: Database, wakeUp: WakeUp, interests: readonly Interest[]) {
    this.#database = database;
    this.#ring = () => wakeUp.ring();
    this.#stop = database.subscribe(this.#ring, interests);
  }

  /** From now on rings at these alone; nothing is missed in between. */
  narrow(interests: readonly Interest[]): void {
    // The wait may have been given up during the look.
    if (this.#hasEnded) return;
    const stop = this.#database.subscribe(this.#ring, interests);
    this.#stop();
    this.#stop = stop;
  }

  end(): void {
    this.#hasEnded = true;
    this.#stop();
  }
}

function aborted(what: string, signal: AbortSignal): HoldfastError {
  return new HoldfastError(
    "ABORTED",
    `The signal aborted the wait for ${what}; nothing was changed by it.`,
    {},
    { cause: signal.reason },
  );
}

function deadlineExceeded(what: string, timeoutMs: number): HoldfastError {
  return new HoldfastError(
    "DEADLINE_EXCEEDED",
    `Waited ${timeoutMs} ms for ${what} without success; it may still come. Wait again, or allow more time.`,
    { timeoutMs },
  );
}

function unanswered(what: string, timeoutMs: number): HoldfastError {
  return new HoldfastError(
    "DEADLINE_EXCEEDED",
    `Waited ${timeoutMs} ms for ${what}, and the database has not answered since; whether it is there is not known. Wait again when the database can be reached.`,
    { timeoutMs, isUnanswered: true },
  );
}
