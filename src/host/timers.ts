// Not the globals, which fake timers of tests replace.
import {
  clearTimeout as realClear,
  setImmediate as realImmediate,
  setInterval as every,
  setTimeout as realTimeout,
} from "node:timers";

// Node fires a longer timeout after 1 ms, so longer waits go in steps.
const timeoutMsMax = 2 ** 31 - 1;

/**
 * Resolves after `ms`; rejects with the signal's reason when that aborts. Keeps
 * the process alive.
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
 * Runs once the event loop has come around: after pending I/O callbacks, so
 * that work in slices does not starve the rest of the process.
 */
export function soon(run: () => void): void {
  setImmediate(run);
}

/** The same for what must go on while a test has replaced the timers: commits, and the rests of runs. */
export function realSoon(run: () => void): void {
  realImmediate(run);
}

/**
 * Runs after `ms`, unless the returned function is called first. Does not keep
 * the process alive: what must happen is in the database.
 */
export function later(ms: number, run: () => void): () => void {
  return start(ms, false, run);
}

/** The same on the machine's own timers, whatever a test has put in their place; `ms` up to 24 days. */
export function realLater(ms: number, run: () => void): () => void {
  const timeout = realTimeout(run, ms);
  return () => realClear(timeout);
}

/** The same for what somebody waits for: it keeps the process alive. */
export function after(ms: number, run: () => void): () => void {
  return start(ms, true, run);
}

/** How much goes on that somebody waits for, and the timer that keeps the process for it. */
let holds = 0;
let anchor: NodeJS.Timeout | undefined;

/**
 * Keeps the process alive until the returned function is called, which may be
 * called more than once. Everything else here that waits is woken by sockets,
 * threads and timers that do not: an open database alone must not keep a
 * program from ending. So whatever somebody awaits says so with this.
 */
export function keepAlive(): () => void {
  // One timer for all, made once: taking hold of it again costs next to nothing.
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

/** For measuring: unrelated to the date, and never set back. */
export function monotonicMs(): number {
  return performance.now();
}

/** Milliseconds for which this process has had a processor. */
export function processorMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

function start(ms: number, isRef: boolean, run: () => void): () => void {
  let timeout: NodeJS.Timeout;
  const wait = (leftMs: number): void => {
    // An instant may pass while it is counted how far away it is; Node warns of what is below zero.
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
