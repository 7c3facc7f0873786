import { row, rows, run } from "../../sql/operation.ts";
import type { Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import type { QueueClaimRef } from "./claim.ts";

/**
 * What tells a repeated completion from a claim that does not count: its
 * batches are gone in both cases, and only the first is no mistake.
 */

/** As many as one call completes, so that any call can be repeated at once. */
const completedClaimsMax = 256;

/**
 * Whether a claim on just these batches was completed under the lease with
 * this fence, as far as it is remembered. Only asked of claims that do not
 * count, so it has no index: the few rows of the session are looked at.
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

/** Remembers completed claims, and forgets those of earlier leases and the oldest. */
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
