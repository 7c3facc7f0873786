import type { Clock, Now } from "../../model/clock.ts";
import { isHoldfastError, type ErrorCode } from "../../model/errors.ts";
import type { LeaseFence } from "../../model/lease.ts";
import type { Database } from "../../sql/database.ts";
import type { SessionRef } from "../session/session-row.ts";
import { sessionLeases } from "./parts.ts";

interface ShownLease {
  readonly session: SessionRef;
  readonly fence: LeaseFence | undefined;
}

/**
 * What a call answers that shows a lease. When it is refused because the lease
 * has run out, that is recorded before its caller learns of it: the refused
 * call has rolled back, and without a record a clock that is set back would
 * let the same lease pass later.
 */
export async function endingExpired<T>(
  context: { readonly database: Database; readonly clock: Clock },
  shown: ShownLease,
  call: (now: Now) => Promise<T>,
): Promise<T> {
  let at = 0;
  const { session: of, fence } = shown;
  const { database, clock } = context;
  return recordingExpiry(
    call(() => (at = clock.now())),
    "LEASE_LOST",
    () => database.write(sessionLeases.endExpired(context), { of, fence, at }),
  );
}

/** What a call answers, after an expiry that it met was recorded. */
export async function recordingExpiry<T>(
  call: Promise<T>,
  code: ErrorCode,
  record: () => Promise<unknown>,
): Promise<T> {
  try {
    return await call;
  } catch (error) {
    const hasExpired =
      isHoldfastError(error) &&
      error.code === code &&
      error.details["reason"] === "expired";
    // Its failure must not hide why the call was refused.
    if (hasExpired) await record().catch(() => undefined);
    throw error;
  }
}
