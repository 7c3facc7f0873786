import { systemEntropy } from "../../host/entropy.ts";
import { monotonicMs } from "../../host/timers.ts";
import type { HoldfastError } from "../../model/errors.ts";
import type { Call } from "./call.ts";
import { isRacedOften } from "./failures.ts";

/** As long as SQLite waits for other processes. */
const budgetMs = 15_000;
/** What was in the way has long committed; more would only keep the caller waiting. */
const conflictPauseMsMax = 64;
/** A user's transaction has given up after a short wait, and its locks with it. */
const userLockPauseMsMax = 200;
/** A read changes nothing, so a broken connection is no reason to bother its caller. */
const readAttemptsMax = 3;

/** As many idle connections as may have died unnoticed, and then some seconds. */
const beginningsMax = 15;

/** How long to wait before the call is run again, or undefined when it has had its chances. */
export function pauseBeforeRetry(
  call: Call,
  error: HoldfastError,
  hasBegun = true,
): number | undefined {
  if (!hasBegun) return pauseBeforeBeginning(call, error);
  const waitedMs = monotonicMs() - (call.firstTakenMs ?? monotonicMs());
  switch (error.code) {
    case "CONNECTION_LOST":
      return call.access === "read" && call.attempts < readAttemptsMax ? 0 : undefined;
    case "DATABASE_BUSY":
      // Others get the connection meanwhile.
      return waitedMs < budgetMs
        ? jittered(
            call.body.isOurs
              ? Math.min(50 * 2 ** call.attempts, 1_000)
              : Math.min(2 ** call.attempts, userLockPauseMsMax),
          )
        : undefined;
    case "TRANSACTION_CONFLICT":
      return waitedMs < budgetMs && !isRacedOften(error, call.attempts)
        ? jittered(Math.min(2 ** call.attempts, conflictPauseMsMax))
        : undefined;
    default:
      return undefined;
  }
}

/**
 * Nothing had happened, so another connection may do for a write as well; a
 * server that answers, and refuses, would refuse it there too.
 */
function pauseBeforeBeginning({ attempts }: Call, { code }: HoldfastError): number | undefined {
  return code === "CONNECTION_LOST" && attempts < beginningsMax
    ? jittered(Math.min(2 ** attempts, 1_000))
    : undefined;
}

/** Between a half and the whole of it, so that those who collided part. */
function jittered(pauseMs: number): number {
  const [byte = 0] = systemEntropy.bytes(1);
  return (pauseMs * (256 + byte)) / 512;
}
