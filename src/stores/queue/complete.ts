import { instantOf } from "../../model/clock.ts";
import type { Now } from "../../model/clock.ts";
import { HoldfastError } from "../../model/errors.ts";
import type { LeaseFence } from "../../model/lease.ts";
import type { SessionId } from "../../model/session-id.ts";
import { integersOf } from "../../sql/dialect.ts";
import { announce, run, plainOperation } from "../../sql/operation.ts";
import type { Operation, Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { assertFenceAt } from "../lease/parts.ts";
import { lockedSession } from "../session/session-row.ts";
import type { SessionRef, SessionRoot } from "../session/session-row.ts";
import type { BatchRow } from "./batch-row.ts";
import { batchesById, isOf } from "./claim.ts";
import type { QueueClaimRef } from "./claim.ts";
import { rememberCompleted, wasCompleted } from "./completed.ts";
import { rememberConsumed } from "./consumed.ts";
import { queueWork } from "./topics.ts";

/**
 * Consumes what was claimed, inside the commit that dealt with it and that has
 * asserted the fence: the batches leave the queue, and their sources are
 * remembered. Each claim is completed as a whole.
 *
 * @throws HoldfastError `CLAIM_LOST` when a claim was abandoned, made under
 *   another lease, or did not take exactly these batches.
 */
export function* consumeClaims(
  session: SessionRoot,
  fence: LeaseFence,
  claims: readonly QueueClaimRef[],
  now: number,
): Tx<void> {
  if (claims.length === 0) return;
  for (const [index, claim] of claims.entries())
    if (!(yield* isConsumed(session, fence, claim, now)))
      throw claimLost(session.id, claim, index);
  yield* announce(queueWork, session.id);
}

/** Consumes one claim; false when it does not count. */
function* isConsumed(
  session: SessionRoot,
  { fence }: LeaseFence,
  claim: QueueClaimRef,
  now: number,
): Tx<boolean> {
  const batches = yield* batchesById(session.key, claim.batches);
  if (!isWhole(batches, claim, fence)) return false;
  yield* removeBatches(session.key, batches, now);
  return true;
}

function isWhole(
  batches: readonly BatchRow[],
  claim: QueueClaimRef,
  fence: number,
): boolean {
  return (
    batches.length > 0 &&
    batches.length === claim.batches.length &&
    batches.every(
      (batch) =>
        isOf(batch, claim) &&
        batch.claim_fence === fence &&
        batch.claim_size === batches.length,
    )
  );
}

/** Takes batches out of the queue for good, and remembers their sources. */
export function* removeBatches(
  session: number,
  batches: readonly BatchRow[],
  now: number,
): Tx<void> {
  const keys = integersOf(batches.map(({ key }) => key));
  yield* run(sql`DELETE FROM holdfast_queue_item WHERE batch IN ${keys}`);
  yield* run(sql`DELETE FROM holdfast_queue_batch WHERE key IN ${keys}`);
  for (const batch of batches) yield* rememberConsumed(session, batch, now);
}

/** The claim itself is a secret of its holder, so the batches name it. */
function claimLost(
  session: SessionId,
  claim: QueueClaimRef,
  index: number,
): HoldfastError {
  const { batches } = claim;
  return new HoldfastError(
    "CLAIM_LOST",
    `Claim number ${index} (${batches.length} batches of session "${session}", the first is ${batches[0] ?? "missing"}) does not count: ` +
      "it was given back or overtaken, or took other batches. Nothing was changed. Claim work again, and complete each claim with the batches it took.",
    { session, claim: index, batches },
  );
}

export interface CompleteWithoutCommit {
  readonly session: SessionRef;
  readonly fence: LeaseFence;
  readonly claims: readonly QueueClaimRef[];
  readonly now: Now;
}

/**
 * The same outside of any commit: for work that leaves nothing behind in its
 * session. May be repeated: the last claims that were completed in this way
 * under the same lease are remembered.
 */
export const completeWithoutCommit: Operation<CompleteWithoutCommit, void> =
  plainOperation("completeWithoutCommit", {
    key: (input: CompleteWithoutCommit) => input.session.id,
    *one({ session: ref, fence, claims, now: tell }) {
      const session = yield* lockedSession(ref);
      const now = instantOf(tell);
      yield* assertFenceAt(session, fence, now);
      const consumed: QueueClaimRef[] = [];
      for (const [index, claim] of claims.entries())
        if (yield* isConsumed(session, fence, claim, now)) consumed.push(claim);
        else if (!(yield* wasCompleted(session.key, fence.fence, claim)))
          throw claimLost(session.id, claim, index);
      if (consumed.length === 0) return;
      // Only now: a claim that is named twice in one call is no repetition.
      yield* rememberCompleted(session.key, fence.fence, consumed);
      yield* announce(queueWork, session.id);
    },
  });
