// Imported because tests replace the globals with fake timers.
import {
  clearTimeout as realClear,
  setImmediate as realImmediate,
  setInterval as every,
  setTimeout as realTimeout,
} from "node:timers";

// Node fires a longer timeout after 1 ms, so a longer wait takes several steps.
const timeoutMsMax = 2 ** 31 - 1;

/**
 * Resolves after `ms`, or rejects with the signal's reason when the signal aborts. Keeps the
 * process alive.
 */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) return reject(signal.reason as Error);
    const onAbort = (): void => {
      cancel();
      reject(signal?.reason as Error);
    };
    const cancel = start(ms, true, () => {
      signal?.removeEventListener("abort", onAbort);
      resolve();
    });
    signal?.addEventListener("abort", onAbort, { once: true });
  });
}

/** Resolves after `ms`, or at once when the signal aborts. Does not keep the process alive. */
export function doze(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      cancel();
      signal.removeEventListener("abort", end);
      resolve();
    };
    const cancel = start(ms, false, end);
    if (signal.aborted) end();
    else signal.addEventListener("abort", end);
  });
}

/**
 * Runs `run` on the next turn of the event loop, after pending I/O callbacks. Work that is cut into
 * slices then does not starve the rest of the process.
 */
export function soon(run: () => void): void {
  setImmediate(run);
}

/**
 * Does the same on Node's own timers, for work that must continue while a test fakes them: commits,
 * and the rest of runs.
 */
export function realSoon(run: () => void): void {
  realImmediate(run);
}

/**
 * Runs `run` after `ms`, unless the returned function is called first. Does not keep the process
 * alive: anything that must happen is in the database.
 */
export function later(ms: number, run: () => void): () => void {
  return start(ms, false, run);
}

/** Does the same on Node's own timers, even while a test fakes them. Takes `ms` up to 24 days. */
export function realLater(ms: number, run: () => void): () => void {
  const timeout = realTimeout(run, ms);
  return () => realClear(timeout);
}

/** Does the same and keeps the process alive, for waits that a caller awaits. */
export function after(ms: number, run: () => void): () => void {
  return start(ms, true, run);
}

/** The number of holds that keep the process alive, and the one timer that does so for them. */
let holds = 0;
let anchor: NodeJS.Timeout | undefined;

/**
 * Keeps the process alive until the returned function is called. Calling that function again does
 * nothing. Sockets, threads and other timers here do not keep the process alive, because an open
 * database must not stop a program from ending. So every wait that a caller awaits takes a hold
 * here.
 */
export function keepAlive(): () => void {
  // One timer, made once, serves all holds: refreshing its reference costs almost nothing.
  anchor ??= every(() => undefined, timeoutMsMax);
  if (holds === 0) anchor.ref();
  holds += 1;
  let isHeld = true;
  return () => {
    if (!isHeld) return;
    isHeld = false;
    holds -= 1;
    if (holds === 0) anchor?.unref();
  };
}

/** A clock for measurements: unrelated to the date, and never set back. */
export function monotonicMs(): number {
  return performance.now();
}

/** The processor time that this process has used, in milliseconds. */
export function processorMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

function start(ms: number, isRef: boolean, run: () => void): () => void {
  let timeout: NodeJS.Timeout;
  const wait = (leftMs: number): void => {
    // The instant may pass while the caller computes the distance. Node warns about negative
    // timeouts.
    const stepMs = Math.min(Math.max(leftMs, 0), timeoutMsMax);
    timeout = setTimeout(() => {
      if (leftMs > stepMs) wait(leftMs - stepMs);
      else run();
    }, stepMs);
    if (!isRef) timeout.unref();
  };
  wait(ms);
  return () => clearTimeout(timeout);
}
