import { later } from "../host/timers.ts";
import { durationMs } from "../model/time/durations.ts";
import { HoldfastError } from "../model/errors.ts";
import { tracedFailure } from "../model/traced-failure.ts";
import type { WaitOptions } from "../sql/database.ts";
import { optionInvalid } from "./option-checks.ts";

/**
 * Calls `giveUp` when the caller's signal aborts or its timeout expires. Returns a function that
 * stops listening, or undefined when there is nothing to listen to. Throws at once if the signal
 * has already aborted.
 */
export function onGiveUp(
  what: string,
  options: WaitOptions | undefined,
  giveUp: (error: HoldfastError) => void,
): (() => void) | undefined {
  const signal = options?.signal;
  const timeout = options?.timeout;
  if (signal === undefined && timeout === undefined) return undefined;
  if (signal !== undefined && typeof signal?.addEventListener !== "function")
    throw optionInvalid("signal", signal, "an AbortSignal, such as controller.signal");
  if (signal?.aborted === true) throw aborted(what, signal.reason);

  // The timer starts first: it may refuse its duration, and then no listener is left behind.
  const cancelTimer = timeout === undefined ? undefined : startTimer(what, timeout, giveUp);
  const onAbort = (): void => giveUp(aborted(what, signal?.reason));
  signal?.addEventListener("abort", onAbort, { once: true });
  return () => {
    signal?.removeEventListener("abort", onAbort);
    cancelTimer?.();
  };
}

function startTimer(
  what: string,
  timeout: NonNullable<WaitOptions["timeout"]>,
  giveUp: (error: HoldfastError) => void,
): () => void {
  const timeoutMs = durationMs(timeout, "timeout");
  return later(timeoutMs, () =>
    giveUp(
      new HoldfastError(
        "DEADLINE_EXCEEDED",
        `Gave up on ${what} after ${timeoutMs} ms; nothing was done. Retry, or allow more time.`,
        { timeoutMs },
      ),
    ),
  );
}

function aborted(what: string, reason: unknown): HoldfastError {
  return new HoldfastError(
    "ABORTED",
    `The signal aborted ${what} before it started; nothing was done.`,
    {},
    { cause: reason },
  );
}

/** Waits for `work` unless the caller gives up first. The work itself continues. */
export function orGiveUp<T>(
  what: string,
  options: WaitOptions | undefined,
  work: () => Promise<T>,
): Promise<T> {
  if (options?.signal === undefined && options?.timeout === undefined) return work();
  return new Promise((resolve) => {
    const fail = (error: unknown): void => resolve(tracedFailure(error));
    const stop = onGiveUp(what, options, fail);
    work()
      .then(resolve, fail)
      .finally(() => stop?.());
  });
}
