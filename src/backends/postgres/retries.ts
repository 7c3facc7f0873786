import { systemEntropy } from "../../host/entropy.ts";
import { monotonicMs } from "../../host/timers.ts";
import type { HoldfastError } from "../../model/errors.ts";
import type { Call } from "./call.ts";

/** A deadlock's victim that lost this often has an unlucky design, not bad luck. */
const conflictsMax = 10;
/** As long as SQLite waits for other processes. */
const lockBudgetMs = 15_000;
/** A read changes nothing, so a broken connection is no reason to bother its caller. */
const readAttemptsMax = 3;

/** How long to wait before the call is run again, or undefined when it has had its chances. */
export function pauseBeforeRetry(
  call: Call,
  error: HoldfastError,
): number | undefined {
  const waitedMs = monotonicMs() - (call.firstTakenMs ?? monotonicMs());
  switch (error.code) {
    case "CONNECTION_LOST":
      return call.access === "read" && call.attempts < readAttemptsMax
        ? 0
        : undefined;
    case "DATABASE_BUSY":
      // Others get the connection meanwhile.
      return waitedMs < lockBudgetMs
        ? jittered(Math.min(50 * 2 ** call.attempts, 1_000))
        : undefined;
    case "TRANSACTION_CONFLICT":
      return call.attempts < conflictsMax
        ? jittered(2 ** call.attempts)
        : undefined;
    default:
      return undefined;
  }
}

/** Between a half and the whole of it, so that those who collided part. */
function jittered(pauseMs: number): number {
  const [byte = 0] = systemEntropy.bytes(1);
  return (pauseMs * (256 + byte)) / 512;
}
