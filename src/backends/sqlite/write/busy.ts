import { monotonicMs, sleep } from "../../../host/timers.ts";
import { systemEntropy } from "../../../host/entropy.ts";
import { isBusy } from "./failures.ts";

const firstRetryMs = 1;
/**
 * The first delay with peers, which announce a free lock by message. Futile attempts take time from
 * working processes.
 */
const firstRetryOfPeersMs = 5;
const longestRetryMs = 50;

/** Doubles up to a cap, with jitter so that waiting processes do not retry in step. */
export function nextRetryMs(previousMs: number, willBeTold = false): number {
  const firstMs = willBeTold ? firstRetryOfPeersMs : firstRetryMs;
  const doubled = Math.min(longestRetryMs, Math.max(firstMs, previousMs * 2));
  return doubled * (0.75 + nextJitter() / 512);
}

/** Random bytes, drawn many at a time: a draw costs as much as a failed attempt. */
let jitter: Uint8Array = new Uint8Array();
let drawn = 0;
function nextJitter(): number {
  if (drawn === jitter.length) {
    jitter = systemEntropy.bytes(256);
    drawn = 0;
  }
  return jitter[drawn++] ?? 0;
}

/**
 * Retries `action` until no lock of another process is in its way, and yields to the event loop in
 * between. SQLite's own busy wait would block the loop, and does not cover the switch to WAL
 * anyway.
 */
export async function retryWhileBusy<T>(
  action: () => T | Promise<T>,
  budgetMs: number,
  onRetry: () => void,
  outOfBudget: (error: unknown) => Error,
): Promise<T> {
  const startedMs = monotonicMs();
  let waitMs = 0;
  for (;;) {
    try {
      return await action();
    } catch (error) {
      if (!isBusy(error)) throw error;
      if (monotonicMs() - startedMs >= budgetMs) throw outOfBudget(error);
      onRetry();
      waitMs = nextRetryMs(waitMs);
      await sleep(waitMs);
    }
  }
}
