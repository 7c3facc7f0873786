import type { WaitOptions } from "../../sql/database.ts";
import { announce, row, rows, run, storeOperation, type Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import type { LeaseFence } from "../../model/lease.ts";
import { assertFence, givenLease, type Lease } from "../lease/parts.ts";
import { onlyWait, type Call } from "../method.ts";
import { lockedSession, type SessionRef } from "../session-row.ts";
import { checkedClaims, type QueueContext } from "./context.ts";
import { claimLost, consumeClaim, type QueueClaimRef } from "./parts.ts";
import { queueWork } from "./topics.ts";

interface CompleteWithoutCommit {
  readonly session: SessionRef;
  readonly fence: LeaseFence;
  readonly claims: readonly QueueClaimRef[];
}

/** @throws HoldfastError `OPTION_INVALID`, `NAME_INVALID`, `ID_MALFORMED` */
export function givenComplete(
  _: QueueContext,
  lease: Lease,
  claims: readonly QueueClaimRef[],
  wait?: WaitOptions,
): Call<CompleteWithoutCommit> {
  const { of: session, fence } = givenLease(lease);
  const input = { session, fence, claims: checkedClaims(claims) };
  return { input, wait: onlyWait(wait) };
}

/**
 * Consumes claimed work outside any commit, for work that leaves nothing in its session. May be
 * repeated: the last claims completed this way under the same lease are remembered.
 *
 * @throws HoldfastError `LEASE_LOST`, `CLAIM_LOST`, `SESSION_NOT_FOUND`, `SESSION_DELETED`
 */
export const completeWithoutCommit = storeOperation("completeWithoutCommit", {
  key: (input) => input.session.id,
  *one(context: QueueContext, { session: ref, fence, claims }: CompleteWithoutCommit): Tx<void> {
    const session = yield* lockedSession(ref);
    const at = yield* assertFence(context, session, fence);
    const consumed: QueueClaimRef[] = [];
    for (const [index, claim] of claims.entries())
      if (yield* consumeClaim(session, fence, claim, at)) consumed.push(claim);
      else if (!(yield* wasCompleted(session.key, fence.fence, claim)))
        throw claimLost(session.id, claim, index);
    if (consumed.length === 0) return;
    // Comes last: a claim that one call names twice is not a repetition.
    yield* rememberCompleted(session.key, fence.fence, consumed);
    yield* announce(queueWork, session.id);
  },
});

// Remembered claims tell a repeated completion from an invalid claim. The batches are gone in both
// cases, and only the first is not a mistake.

/** The largest number of claims in one call, so that any call can be repeated at once. */
const completedClaimsMax = 256;

/**
 * Tests whether a claim on exactly these batches was completed under the lease with this fence, as
 * far as claims are remembered. It is asked only for invalid claims, so it has no index and scans
 * the few rows of the session.
 */
export function* wasCompleted(
  session: number,
  fence: number,
  { claim, batches }: QueueClaimRef,
): Tx<boolean> {
  const found = yield* rows<{
    readonly fence: number;
    readonly batches: string;
  }>(sql`
    SELECT fence, batches FROM holdfast_queue_completed WHERE session = ${session} AND claim = ${claim}`);
  const wanted = listed(batches);
  return found.some((one) => one.fence === fence && one.batches === wanted);
}

/** Remembers completed claims, and removes those of earlier leases and the oldest. */
export function* rememberCompleted(
  session: number,
  fence: number,
  claims: readonly QueueClaimRef[],
): Tx<void> {
  const last = yield* row<{ readonly number: number; readonly fence: number }>(
    sql`SELECT number, fence FROM holdfast_queue_completed WHERE session = ${session} ORDER BY number DESC LIMIT 1`,
  );
  const before = last?.number ?? 0;
  const isSameLease = last?.fence === fence;
  const kept = before + claims.length - completedClaimsMax;
  if (last !== undefined && (!isSameLease || kept > 0))
    yield* run(sql`
      DELETE FROM holdfast_queue_completed
      WHERE session = ${session} AND number <= ${isSameLease ? kept : before}`);
  for (const [index, { claim, batches }] of claims.entries())
    yield* run(sql`
      INSERT INTO holdfast_queue_completed (session, number, fence, claim, batches)
      VALUES (${session}, ${before + index + 1}, ${fence}, ${claim}, ${listed(batches)})`);
}

function listed(batches: readonly string[]): string {
  return JSON.stringify(batches.toSorted());
}
