import type { Clock } from "../model/time/clock.ts";
import { durationMs } from "../model/time/durations.ts";
import { HoldfastError } from "../model/errors.ts";
import { tracedFailure } from "../model/traced-failure.ts";
import { givenSignal } from "../model/shape.ts";
import type { Database, Interest, WaitOptions } from "../sql/database.ts";

/** The finding of a look at the database. */
type Look<T> =
  | { readonly isThere: true; readonly value: T }
  /**
   * Not yet. `again` is the instant of the next look, unless a hint of a change comes first.
   * `interests` replaces the earlier ones: the look has found out what exactly is awaited.
   */
  | {
      readonly isThere: false;
      readonly again?: number | undefined;
      readonly interests?: readonly Interest[] | undefined;
    };

export interface Awaited<T> {
  /** The awaited thing, as errors name it: "the result of execution order-42". */
  readonly what: string;
  /** The changes after which a look could find something new. */
  readonly interests: readonly Interest[];
  readonly look: () => Promise<Look<T>>;
  /**
   * True for a look that writes. The wait never abandons it, since the outcome of its write must be
   * known.
   */
  readonly writes?: boolean;
  /** The clock of all instants and of the timeout; defaults to the database's. */
  readonly clock?: Clock;
}

/**
 * Waits until a look finds the awaited thing. Listens first and looks second, so no change in
 * between goes unnoticed. Looks again after a relevant change, after any change that cannot be
 * identified, and at the instant that the last look named. Looks run one at a time; changes during
 * a look cause one more. Between looks only a timer runs, which keeps the process alive. Nothing
 * remains afterwards.
 *
 * The first look always runs, so a result that exists already is found even with a timeout of 0. An
 * abort ends the wait at once. A timeout ends it after a last look, since a result is worth more
 * than the error. A database that does not answer gets one second for that look. Otherwise a wait
 * of three seconds would last as long as the attempts to connect.
 *
 * @throws HoldfastError `ABORTED`, `DEADLINE_EXCEEDED`, `DATABASE_CLOSED`, and all errors of a
 *   look: only a caller that knows their reason can retry.
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

/**
 * Sleeps until an instant, or until the signal aborts. Keeps the process alive, as every wait does.
 */
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
/** The time in milliseconds that a look may take beyond the end of its wait. */
const lateLookMs = 1_000;

/** Runs a look, and gives up when it takes far longer than the wait may. */
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

/** Wakes a sleeper when it rings, and remembers a ring while nothing sleeps. */
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

  /** Forgets the rings so far: the following look sees the changes after them. */
  hush(): void {
    this.#hasRung = false;
  }

  /** Resolves when it rings or has rung, or when the instant has come. */
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

/** Rings at every change that a look may depend on. */
class Listening {
  readonly #database: Database;
  // A closing database rings too. The following look is then refused with the reason, so closing
  // needs no case of its own here.
  readonly #ring: () => void;
  #stop: () => void;
  #hasEnded = false;

  constructor(database: Database, wakeUp: WakeUp, interests: readonly Interest[]) {
    this.#database = database;
    this.#ring = () => wakeUp.ring();
    this.#stop = database.subscribe(this.#ring, interests);
  }

  /** Narrows the interests to these; no change in between is missed. */
  narrow(interests: readonly Interest[]): void {
    // The wait may have ended during the look.
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
    `The signal aborted the wait for ${what}; the wait changed nothing.`,
    {},
    { cause: signal.reason },
  );
}

function deadlineExceeded(what: string, timeoutMs: number): HoldfastError {
  return new HoldfastError(
    "DEADLINE_EXCEEDED",
    `Waited ${timeoutMs} ms for ${what} without success; it may still happen. Wait again, or with a longer timeout.`,
    { timeoutMs },
  );
}

function unanswered(what: string, timeoutMs: number): HoldfastError {
  return new HoldfastError(
    "DEADLINE_EXCEEDED",
    `Waited ${timeoutMs} ms for ${what}, and the database has not answered since; the outcome is unknown. Wait again when the database can be reached.`,
    { timeoutMs, isUnanswered: true },
  );
}
