import { monotonicMs, sleep } from "../../host/timers.ts";
import { systemEntropy } from "../../host/entropy.ts";
import { isBusy } from "./failures.ts";

const firstRetryMs = 1;
const longestRetryMs = 50;

/** Doubles up to a cap, with jitter so that waiting processes do not move in step. */
export function nextRetryMs(previousMs: number): number {
  const doubled = Math.min(
    longestRetryMs,
    Math.max(firstRetryMs, previousMs * 2),
  );
  return doubled * (0.75 + (systemEntropy.bytes(1)[0] ?? 0) / 512);
}

/**
 * Runs `action` until no lock of another process is in its way, giving the
 * event loop back in between. SQLite's own busy wait would block it, and does
 * not cover the switch to WAL anyway.
 */
export async function retryWhileBusy<T>(
  action: () => T,
  budgetMs: number,
  onRetry: () => void,
  outOfBudget: (error: unknown) => Error,
): Promise<T> {
  const startedMs = monotonicMs();
  let waitMs = 0;
  for (;;) {
    try {
      return action();
    } catch (error) {
      if (!isBusy(error)) throw error;
      if (monotonicMs() - startedMs >= budgetMs) throw outOfBudget(error);
      onRetry();
      waitMs = nextRetryMs(waitMs);
      await sleep(waitMs);
    }
  }
}
