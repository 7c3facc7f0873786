import type { CheckedText } from "../../model/values/encoded.ts";
import { corruptRow } from "../../model/corrupt-row.ts";
import { HoldfastError } from "../../model/errors.ts";
import type { LeaseFence } from "../../model/lease.ts";
import type { QueuePolicy } from "../../model/queue.ts";
import type { ExecutionId } from "../../model/ids/execution-id.ts";
import type { SessionId } from "../../model/ids/session-id.ts";
import { isSameToken } from "../../model/ids/token.ts";
import { integersOf, textsOf } from "../../sql/dialect.ts";
import { announce, row, rows, run, type Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { lockedSession, type SessionRef, type SessionRoot } from "../session-row.ts";
import {
  batchColumns,
  itemId,
  withItems,
  type BatchRow,
  type QueueBatch,
  type QueueSource,
  type WakeSource,
} from "./batch-row.ts";
import type { TurnContext } from "../turn/parts.ts";
import { queueWork } from "./topics.ts";
import { beginTurn } from "./turn-row.ts";

export interface EnqueueBatch {
  readonly session: SessionRef;
  readonly id: string;
  readonly source: QueueSource | null;
  /** Already checked; see `classOf` and `checkedPolicy`. */
  readonly policy: QueuePolicy;
  /** The earliest instant at which it can be claimed; 0 for at once. */
  readonly availableAt: number;
  readonly items: readonly {
    readonly kind: string;
    readonly payload: CheckedText;
  }[];
  /** The instant at which it was enqueued. */
  readonly at: number;
  /** Joins an unclaimed batch with the same key instead of being queued itself. */
  readonly dedupeKey?: string | null;
}

export type EnqueueOutcome<P = CheckedText> =
  | { readonly kind: "queued"; readonly batch: QueueBatch<P> }
  /**
   * Its source has a batch in the queue, or the same prepared call ran before. That batch is
   * unchanged.
   */
  | { readonly kind: "duplicate"; readonly batch: QueueBatch<P> }
  /** A batch with its dedupe key is waiting already and stands for both. */
  | { readonly kind: "coalesced"; readonly batch: QueueBatch<P> }
  /** Its source had a batch, which has left the queue. */
  | { readonly kind: "consumed" };

/** The outcome for a batch that is not known yet. */
export type NewlyEnqueued = Extract<EnqueueOutcome, { readonly kind: "queued" | "coalesced" }>;

/**
 * Enqueues a wake that its process knows to be new. A batch that was enqueued by hand from the same
 * source, or already consumed, does not count as this wake.
 *
 * @throws HoldfastError `SESSION_NOT_FOUND` or `SESSION_DELETED`.
 */
export function* enqueueWake(
  context: TurnContext,
  input: EnqueueBatch & { readonly source: WakeSource },
): Tx<NewlyEnqueued> {
  const session = yield* lockedSession(input.session);
  const joined = yield* joinBatch(session, input);
  if (joined !== undefined) return joined;
  const { process, sequence } = input.source;
  // A batch that was enqueued by hand stays but loses its source, since each source has one batch.
  yield* run(sql`
    UPDATE holdfast_queue_batch SET process = NULL, sequence = NULL
    WHERE session = ${session.key} AND process = ${process} AND sequence = ${sequence}`);
  const queued = yield* queueBatch(session, input);
  yield* beginTurn(context, session, { at: input.at, dueAt: input.availableAt });
  return queued;
}

export function* joinBatch(
  session: SessionRoot,
  { dedupeKey = null }: EnqueueBatch,
): Tx<NewlyEnqueued | undefined> {
  if (dedupeKey === null) return undefined;
  const [batch] = yield* withItems(yield* waitingUnder(session, dedupeKey));
  return batch && { kind: "coalesced", batch };
}

function* queueBatch(session: SessionRoot, input: EnqueueBatch): Tx<NewlyEnqueued> {
  const batch = yield* insertBatch(session.key, input);
  if (batch === undefined)
    throw corruptRow(
      "holdfast_queue_batch",
      input.id,
      "is queued already under the id of a new one",
    );
  yield* announce(queueWork, session.id);
  return { kind: "queued", batch };
}

/**
 * The unclaimed batches under a dedupe key. One that is held back is left out, since no turn begins
 * for it. A claim whose lease has expired by this clock still counts. Its holder may have read its
 * own clock earlier, and complete the batch afterwards together with items that joined it.
 */
function* waitingUnder(session: SessionRoot, dedupeKey: string): Tx<readonly BatchRow[]> {
  const found = yield* row<BatchRow>(sql`
    SELECT ${batchColumns} FROM holdfast_queue_batch
    WHERE session = ${session.key} AND dedupe_key = ${dedupeKey} AND claim IS NULL AND is_held_back = 0
    ORDER BY key LIMIT 1`);
  return found === undefined ? [] : [found];
}

/** Inserts a batch; undefined when a batch with its id is queued already. */
export function* insertBatch(session: number, input: EnqueueBatch): Tx<QueueBatch | undefined> {
  const { id, source, policy, availableAt, items, at } = input;
  const wake = typeof source === "object" ? source : null;
  const inserted = yield* row<{ readonly key: number }>(sql`
    INSERT INTO holdfast_queue_batch
      (id, session, source_key, process, sequence, dedupe_key, class, delivery, slot, merge_key, available_at, enqueued_at)
    VALUES (${id}, ${session}, ${typeof source === "string" ? source : null},
      ${wake?.process ?? null}, ${wake?.sequence ?? null}, ${input.dedupeKey ?? null},
      ${policy.class}, ${policy.delivery}, ${policy.slot}, ${policy.mergeKey}, ${availableAt}, ${at})
    ON CONFLICT (session, id) DO NOTHING RETURNING key`);
  if (inserted === undefined) return undefined;
  const order = inserted.key;
  for (const [ordinal, { kind, payload }] of items.entries())
    yield* run(sql`
      INSERT INTO holdfast_queue_item (batch, ordinal, kind, payload, checksum)
      VALUES (${order}, ${ordinal}, ${kind}, ${payload.text}, ${payload.checksum})`);
  return {
    ...policy,
    id,
    order,
    source,
    availableAt,
    enqueuedAt: at,
    failedTurns: 0,
    isHeldBack: false,
    items: items.map((item, ordinal) => ({ id: itemId(id, ordinal), ...item })),
  };
}

/**
 * The reference by which a claim is completed or abandoned. The claim is a secret token and appears
 * in no list.
 */
export interface QueueClaimRef {
  readonly claim: string;
  readonly batches: readonly string[];
}

export function* batchesById(session: number, ids: readonly string[]): Tx<readonly BatchRow[]> {
  return yield* rows<BatchRow>(sql`
    SELECT ${batchColumns} FROM holdfast_queue_batch
    WHERE session = ${session} AND id IN ${textsOf(ids)}`);
}

export function isOf(batch: BatchRow, { claim }: QueueClaimRef): boolean {
  return batch.claim !== null && isSameToken(batch.claim, claim);
}

/**
 * Consumes claimed batches inside the commit that used them and has asserted the fence. The batches
 * leave the queue, and their sources are remembered. Each claim is completed as a whole.
 *
 * @throws HoldfastError `CLAIM_LOST` when a claim was abandoned, made under another lease, or did
 *   not take exactly these batches.
 */
export function* consumeClaims(
  session: SessionRoot,
  holder: ClaimHolder,
  claims: readonly QueueClaimRef[],
  now: number,
): Tx<void> {
  if (claims.length === 0) return;
  for (const [index, claim] of claims.entries())
    if (!(yield* consumeClaim(session, holder, claim, now)))
      throw claimLost(session.id, claim, index);
  yield* announce(queueWork, session.id);
}

/** The holder of a claim: the lease of this fence, or the run of a turn. */
export type ClaimHolder = Pick<LeaseFence, "fence"> | { readonly turn: ExecutionId };

/** Consumes one claim; false when it is not valid. */
export function* consumeClaim(
  session: SessionRoot,
  holder: ClaimHolder,
  claim: QueueClaimRef,
  now: number,
): Tx<boolean> {
  const batches = yield* batchesById(session.key, claim.batches);
  if (!isWhole(batches, claim, holder)) return false;
  yield* removeBatches(session.key, batches, now);
  return true;
}

function isWhole(batches: readonly BatchRow[], claim: QueueClaimRef, holder: ClaimHolder): boolean {
  return (
    batches.length > 0 &&
    batches.length === claim.batches.length &&
    batches.every(
      (batch) =>
        isOf(batch, claim) && isHeldBy(batch, holder) && batch.claim_size === batches.length,
    )
  );
}

function isHeldBy({ turn, claim_fence: fence }: BatchRow, holder: ClaimHolder): boolean {
  return "turn" in holder ? turn === holder.turn : fence === holder.fence;
}

/** Removes batches from the queue for good, and remembers their sources. */
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

/** The claim itself is a secret of its holder, so the message names its batches instead. */
export function claimLost(session: SessionId, claim: QueueClaimRef, index: number): HoldfastError {
  const { batches } = claim;
  return new HoldfastError(
    "CLAIM_LOST",
    `Claim number ${index} (${batches.length} batches of session "${session}", the first is ${batches[0] ?? "missing"}) is not valid: ` +
      "it was released or overtaken, or took other batches. Nothing was changed. Claim work again, and complete each claim with the batches that it took.",
    { session, claim: index, batches },
  );
}

/** Tests whether a batch of this source has left the queue, as far as sources are remembered. */
export function* wasConsumed(
  session: number,
  source: QueueSource,
  forgottenUntil: number,
): Tx<boolean> {
  const found =
    typeof source === "string"
      ? yield* row(sql`
          SELECT at FROM holdfast_queue_consumed
          WHERE session = ${session} AND source_key = ${source} AND at > ${forgottenUntil}`)
      : yield* row(sql`
          SELECT sequence FROM holdfast_queue_wake_mark
          WHERE session = ${session} AND process = ${source.process} AND sequence >= ${source.sequence}`);
  return found !== undefined;
}

/** Remembers a batch that leaves the queue. */
function* rememberConsumed(
  session: number,
  batch: Pick<BatchRow, "source_key" | "process" | "sequence">,
  now: number,
): Tx<void> {
  const { source_key: sourceKey, process, sequence } = batch;
  if (sourceKey !== null)
    yield* run(sql`
      INSERT INTO holdfast_queue_consumed (session, source_key, at) VALUES (${session}, ${sourceKey}, ${now})
      ON CONFLICT (session, source_key) DO UPDATE SET at = excluded.at`);
  if (process !== null && sequence !== null)
    yield* run(sql`
      INSERT INTO holdfast_queue_wake_mark (session, process, sequence) VALUES (${session}, ${process}, ${sequence})
      ON CONFLICT (session, process) DO UPDATE SET sequence = excluded.sequence
      WHERE holdfast_queue_wake_mark.sequence < excluded.sequence`);
}
