import { systemEntropy } from "../../host/entropy.ts";
import { monotonicMs } from "../../host/timers.ts";
import type { HoldfastError } from "../../model/errors.ts";
import type { Call } from "./call.ts";
import { isRacedOften } from "./failures.ts";

/** The same time for which SQLite waits for other processes. */
const budgetMs = 15_000;
/**
 * The conflicting transaction has long committed by then; a longer pause would only delay the
 * caller.
 */
const conflictPauseMsMax = 64;
/** A user's transaction gave up after a short wait, and released its locks. */
const userLockPauseMsMax = 200;
/** A read changes nothing, so a broken connection need not concern its caller. */
const readAttemptsMax = 3;

/** Covers all idle connections that may have died unnoticed, and a few seconds more. */
const beginningsMax = 15;

/** The pause before the call is rerun, or undefined when it has used up its attempts. */
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
      // Other calls use the connection during the pause.
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
 * The pause before a transaction that could not begin. Nothing had happened, so another connection
 * may work for a write as well. A server that answers with a refusal would refuse it there too.
 */
function pauseBeforeBeginning({ attempts }: Call, { code }: HoldfastError): number | undefined {
  return code === "CONNECTION_LOST" && attempts < beginningsMax
    ? jittered(Math.min(2 ** attempts, 1_000))
    : undefined;
}

/** Between half of the pause and all of it, so that colliding calls separate. */
function jittered(pauseMs: number): number {
  const [byte = 0] = systemEntropy.bytes(1);
  return (pauseMs * (256 + byte)) / 512;
}
