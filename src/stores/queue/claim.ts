import { instantOf } from "../../model/clock.ts";
import type { Now } from "../../model/clock.ts";
import { unreachable } from "../../model/errors.ts";
import type { Encoded } from "../../model/encoded.ts";
import type { LeaseFence } from "../../model/lease.ts";
import { commandPrefix, turnPrefix } from "../../model/queue.ts";
import type { Boundary } from "../../model/queue.ts";
import { isSameToken } from "../../model/token.ts";
import { integersOf, keysOf, textsOf } from "../../sql/dialect.ts";
import { announce, rows, run, plainOperation } from "../../sql/operation.ts";
import type { Operation, Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { assertFenceAt } from "../lease/parts.ts";
import { lockedSession } from "../session/session-row.ts";
import type { SessionRef } from "../session/session-row.ts";
import { batchColumns, policyOf, withItems } from "./batch-row.ts";
import type { BatchRow, QueueBatch } from "./batch-row.ts";
import { queueWork } from "./topics.ts";

/** What is wanted from the front of a queue. Nothing is ever skipped to get at it. */
export type WantedWork =
  | { readonly kind: "command" }
  | { readonly kind: "turn"; readonly boundary: Boundary; readonly max: number }
  /** These, in this order, or nothing. */
  | {
      readonly kind: "these";
      readonly boundary: Boundary;
      readonly ids: readonly string[];
    };

export interface ClaimWork {
  readonly session: SessionRef;
  readonly fence: LeaseFence;
  readonly want: WantedWork;
  /** A token that nobody else can know. */
  readonly claim: string;
  /** Whether it may have been made before: then what it took under this lease is answered again. */
  readonly mayBeRepeated: boolean;
  readonly now: Now;
}

/** Batches in the hands of the holder of the session's lease. */
export interface ClaimedWork<P = Encoded> {
  readonly ref: QueueClaimRef;
  /** That of the lease: the claim counts as long as the lease has it. */
  readonly fence: number;
  readonly batches: readonly QueueBatch<P>[];
}

/** What a claim is completed or abandoned by. The claim is a token: it is not listed anywhere. */
export interface QueueClaimRef {
  readonly claim: string;
  readonly batches: readonly string[];
}

/**
 * Claims work from the front of a session's queue. What is not available yet
 * or is claimed under this lease already is passed over; a claim under an
 * earlier lease no longer counts.
 *
 * @throws HoldfastError `LEASE_LOST`, `SESSION_NOT_FOUND` or `SESSION_DELETED`.
 */
export const claimWork: Operation<ClaimWork, ClaimedWork | undefined> =
  plainOperation("claimWork", {
    key: (input: ClaimWork) => input.session.id,
    *one({ session: ref, fence, want, claim, mayBeRepeated, now: tell }) {
      const limit = limitOf(want);
      if (limit === 0) return undefined;
      const session = yield* lockedSession(ref);
      const now = instantOf(tell);
      yield* assertFenceAt(session, fence, now);
      const before = mayBeRepeated
        ? yield* claimedBy(session.key, fence.fence, claim)
        : [];
      if (before.length > 0) return yield* claimedWork(claim, fence, before);
      const line = yield* claimable(session.key, fence.fence, now, limit);
      const taken = line.slice(0, prefixOf(want, line));
      if (taken.length === 0) return undefined;
      yield* run(sql`
        UPDATE holdfast_queue_batch
        SET claim = ${claim}, claim_fence = ${fence.fence}, claim_size = ${taken.length}
        WHERE key IN ${integersOf(taken.map(({ key }) => key))}`);
      return yield* claimedWork(claim, fence, taken);
    },
  });

function* claimedWork(
  claim: string,
  { fence }: LeaseFence,
  taken: readonly BatchRow[],
): Tx<ClaimedWork> {
  return {
    ref: { claim, batches: taken.map(({ id }) => id) },
    fence,
    batches: yield* withItems(taken),
  };
}

/** What a claim took, when it is made again because its answer was lost. */
function* claimedBy(
  session: number,
  fence: number,
  claim: string,
): Tx<readonly BatchRow[]> {
  return yield* rows<BatchRow>(sql`
    SELECT ${batchColumns} FROM holdfast_queue_batch
    WHERE session = ${session} AND claim_fence = ${fence} AND claim = ${claim} ORDER BY key`);
}

/** The front of a queue: what is available and has no claim that counts. Filtered before it is cut off, so that nothing claimed can hide what is ready. */
export function* claimable(
  session: number,
  liveFence: number,
  now: number,
  limit: number,
): Tx<readonly BatchRow[]> {
  return yield* rows<BatchRow>(sql`
    SELECT ${batchColumns} FROM holdfast_queue_batch
    WHERE ${keysOf(session, 0)} AND available_at <= ${now} AND (claim IS NULL OR claim_fence <> ${liveFence})
    ORDER BY session, key LIMIT ${limit}`);
}

function limitOf(want: WantedWork): number {
  switch (want.kind) {
    case "command":
      return 1;
    case "turn":
      return want.max;
    case "these":
      return want.ids.length;
    default:
      return unreachable(want);
  }
}

function prefixOf(want: WantedWork, line: readonly BatchRow[]): number {
  const policies = line.map(policyOf);
  switch (want.kind) {
    case "command":
      return commandPrefix(policies);
    case "turn":
      return turnPrefix(policies, want.boundary, want.max);
    case "these": {
      const { boundary, ids } = want;
      const taken =
        commandPrefix(policies) || turnPrefix(policies, boundary, ids.length);
      const isWanted =
        taken === ids.length &&
        ids.every((id, index) => id === line[index]?.id);
      return isWanted ? taken : 0;
    }
    default:
      return unreachable(want);
  }
}

export interface AbandonClaim {
  readonly session: SessionRef;
  readonly claim: QueueClaimRef;
}

/**
 * Gives claimed batches back, to be claimed again at once; tells how many.
 * Those that somebody else has claimed since are left alone.
 *
 * @throws HoldfastError `SESSION_NOT_FOUND` or `SESSION_DELETED`.
 */
export const abandonClaim: Operation<AbandonClaim, number> = plainOperation(
  "abandonClaim",
  {
    key: (input: AbandonClaim) => input.session.id,
    *one({ session: ref, claim }) {
      const session = yield* lockedSession(ref);
      const found = yield* batchesById(session.key, claim.batches);
      const own = found.filter((batch) => isOf(batch, claim));
      if (own.length === 0) return 0;
      yield* run(sql`
        UPDATE holdfast_queue_batch SET claim = NULL, claim_fence = NULL, claim_size = NULL
        WHERE key IN ${integersOf(own.map(({ key }) => key))}`);
      yield* announce(queueWork, session.id);
      return own.length;
    },
  },
);

export function* batchesById(
  session: number,
  ids: readonly string[],
): Tx<readonly BatchRow[]> {
  return yield* rows<BatchRow>(sql`
    SELECT ${batchColumns} FROM holdfast_queue_batch
    WHERE session = ${session} AND id IN ${textsOf(ids)}`);
}

export function isOf(batch: BatchRow, { claim }: QueueClaimRef): boolean {
  return batch.claim !== null && isSameToken(batch.claim, claim);
}
