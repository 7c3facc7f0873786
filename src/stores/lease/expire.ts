import type { Clock, Now } from "../../model/clock.ts";
import { isHoldfastError } from "../../model/errors.ts";
import type { ErrorCode } from "../../model/errors.ts";
import type { LeaseFence, LeaseHolder } from "../../model/lease.ts";
import { announce, plainOperation } from "../../sql/operation.ts";
import type { Operation } from "../../sql/operation.ts";
import type { Database, WaitOptions } from "../../sql/database.ts";
import { lockedSession } from "../session/session-row.ts";
import type { SessionRef } from "../session/session-row.ts";
import { expireLease, leaseState } from "./lease-row.ts";
import { endExpiredLease } from "./parts.ts";
import { judgeLease, readingOf } from "./renew.ts";
import { leaseChanged } from "./topics.ts";

interface ShownLease {
  readonly session: SessionRef;
  readonly fence: LeaseFence | undefined;
}

interface LeaseEnd {
  readonly session: SessionRef;
  readonly at: number;
}

/** Judges a lease again once its session is locked, and records that it is over; tells who holds it if it is not. */
const recordLeaseEnd: Operation<LeaseEnd, LeaseHolder | undefined> =
  plainOperation("recordLeaseEnd", {
    key: (input: LeaseEnd) => input.session.id,
    *one({ session: ref, at }) {
      const session = yield* lockedSession(ref);
      const reading = readingOf(yield* leaseState(session), at);
      if (reading.isUnrecordedEnd) {
        yield* expireLease(session.key, at);
        yield* announce(leaseChanged, session.id);
      }
      return reading.holder;
    },
  });

/**
 * Who holds a lease. Before a caller learns that it has run out, that is
 * recorded, once for each lease: without a record a clock that is set back
 * would show it as held again, here or in another process. Where nothing can
 * be written the caller is answered all the same.
 */
export async function shownHolder(
  { database, clock }: { readonly database: Database; readonly clock: Clock },
  session: SessionRef,
  wait: WaitOptions | undefined,
): Promise<LeaseHolder | undefined> {
  const now = clock.now();
  const reading = await database.read(judgeLease, { session, now }, wait);
  if (!reading.isUnrecordedEnd) return reading.holder;
  return database
    .write(recordLeaseEnd, { session, at: now }, wait)
    .catch(() => undefined);
}

/**
 * What a call answers that shows a lease. When it is refused because the lease
 * has run out, that is recorded before its caller learns of it: the refused
 * call has rolled back, and without a record a clock that is set back would
 * let the same lease pass later.
 */
export async function endingExpired<T>(
  { database, clock }: { readonly database: Database; readonly clock: Clock },
  shown: ShownLease,
  call: (now: Now) => Promise<T>,
): Promise<T> {
  let at = 0;
  const { session, fence } = shown;
  return recordingExpiry(
    call(() => (at = clock.now())),
    "LEASE_LOST",
    () => database.write(endExpiredLease, { session, fence, at }),
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
