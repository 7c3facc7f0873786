import type { CheckedText, Encoded } from "../../model/values/encoded.ts";
import { HoldfastError } from "../../model/errors.ts";
import { isPolicy } from "../../model/queue.ts";
import type { Delivery, QueuePolicy, Slot, WorkClass } from "../../model/queue.ts";
import { integersOf, keysOf } from "../../sql/dialect.ts";
import { rows, run } from "../../sql/operation.ts";
import type { Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import type { Statement } from "../../sql/statement.ts";
import type { OwnedRows } from "../removal.ts";

/**
 * The queue of a session: batches in the order of their keys, each with its items, which are
 * claimed and consumed together. A claim is a token and the fence of the lease that it was made
 * under. It is valid while that lease is, and has no time of its own. The source of consumed
 * batches is remembered: for a process the highest number (`_wake_mark`), for other sources each
 * key (`_consumed`), for 30 days by default. Of claims without a commit the last ones are
 * remembered (`_completed`).
 */

/** The bytes of the items of a batch `b`. */
export const itemBytes: Statement = sql`(
  SELECT COALESCE(SUM(octet_length(i.payload)), 0) FROM holdfast_queue_item i WHERE i.batch = b.key)`;

/** The source of a wake: a process, and the number of the wake in that process. */
export interface WakeSource {
  readonly process: string;
  readonly sequence: number;
}

/** The caller's name for a batch. Enqueuing twice under one name enqueues once. */
export type QueueSource = string | WakeSource;

export interface QueueItem<P = CheckedText> {
  readonly id: string;
  readonly kind: string;
  readonly payload: P;
}

/** Items that were enqueued together, and are claimed and consumed together. */
export interface QueueBatch<P = CheckedText> extends QueuePolicy {
  readonly id: string;
  /** Its place in the queue, comparable only within one session. */
  readonly order: number;
  readonly source: QueueSource | null;
  readonly availableAt: number;
  readonly enqueuedAt: number;
  /** The number of turns that ended on it without consuming it. After three it is set aside. */
  readonly failedTurns: number;
  /** True while it waits for a further `enqueue`, or for `retry`, before another turn gets it. */
  readonly isHeldBack: boolean;
  readonly items: readonly QueueItem<P>[];
}

/** The columns of `holdfast_queue_batch` that operations read. */
export interface BatchRow {
  readonly key: number;
  readonly id: string;
  readonly source_key: string | null;
  readonly process: string | null;
  readonly sequence: number | null;
  readonly class: WorkClass;
  readonly delivery: Delivery;
  readonly slot: Slot;
  readonly merge_key: string | null;
  readonly available_at: number;
  readonly enqueued_at: number;
  readonly claim: string | null;
  readonly claim_fence: number | null;
  readonly claim_size: number | null;
  /** The run of the turn that has claimed it. */
  readonly turn: string | null;
  readonly failed_turns: number;
  readonly is_held_back: number;
}

export const batchColumns: Statement = sql`
  key, id, source_key, process, sequence, class, delivery, slot, merge_key, available_at, enqueued_at,
  claim, claim_fence, claim_size, turn, failed_turns, is_held_back`;

/**
 * True while a claim is valid, given the fence of the session's lease (0 for a free lease). That of
 * a turn ends with the turn.
 */
export function isClaimed(
  batch: Pick<BatchRow, "claim" | "claim_fence" | "turn">,
  liveFence: number,
): boolean {
  return batch.claim !== null && (batch.turn !== null || batch.claim_fence === liveFence);
}

/** @throws HoldfastError `CORRUPT_ROW` */
export function policyOf(batch: BatchRow): QueuePolicy {
  if (!isPolicy(batch))
    throw new HoldfastError(
      "CORRUPT_ROW",
      `The class, delivery or slot of batch ${batch.id} is not one that Holdfast writes. ` +
        "Cancel the batch, or repair the row with a database shell.",
      { table: "holdfast_queue_batch", key: batch.id },
    );
  const { delivery, slot, merge_key: mergeKey } = batch;
  return { class: batch.class, delivery, slot, mergeKey };
}

/** Reads batches with their items, in the given order. Their policies are not checked. */
export function* withItems(batches: readonly BatchRow[]): Tx<readonly QueueBatch[]> {
  if (batches.length === 0) return [];
  const found = yield* rows<{
    readonly batch: number;
    readonly ordinal: number;
    readonly kind: string;
    readonly payload: Encoded;
    readonly checksum: string;
  }>(sql`
    SELECT batch, ordinal, kind, payload, checksum FROM holdfast_queue_item
    WHERE batch IN ${integersOf(batches.map(({ key }) => key))} ORDER BY batch, ordinal`);
  const itemsOf = new Map(batches.map(({ key }) => [key, [] as QueueItem[]]));
  const idOf = new Map(batches.map(({ key, id }) => [key, id]));
  for (const { batch, ordinal, kind, payload: text, checksum } of found)
    itemsOf.get(batch)?.push({
      id: itemId(idOf.get(batch) ?? "", ordinal),
      kind,
      payload: { text, checksum },
    });
  return batches.map((batch) => ({
    id: batch.id,
    order: batch.key,
    source: sourceOf(batch),
    class: batch.class,
    delivery: batch.delivery,
    slot: batch.slot,
    mergeKey: batch.merge_key,
    availableAt: batch.available_at,
    enqueuedAt: batch.enqueued_at,
    failedTurns: batch.failed_turns,
    isHeldBack: batch.is_held_back === 1,
    items: itemsOf.get(batch.key) ?? [],
  }));
}

export function itemId(batch: string, ordinal: number): string {
  return `${batch}.${ordinal}`;
}

function sourceOf(batch: BatchRow): QueueSource | null {
  const { source_key: sourceKey, process, sequence } = batch;
  return process !== null && sequence !== null ? { process, sequence } : sourceKey;
}

/** The queue rows that are removed with their session. */
export const queueOwned: readonly OwnedRows[] = [
  { table: "holdfast_queue_batch", remove: removeQueued },
  {
    table: "holdfast_queue_consumed",
    remove: (session, rowsMax) =>
      run(sql`
        DELETE FROM holdfast_queue_consumed WHERE session = ${session} AND source_key IN (
          SELECT source_key FROM holdfast_queue_consumed WHERE session = ${session} ORDER BY source_key LIMIT ${rowsMax})`),
  },
  {
    table: "holdfast_queue_wake_mark",
    remove: (session, rowsMax) =>
      run(sql`
        DELETE FROM holdfast_queue_wake_mark WHERE session = ${session} AND process IN (
          SELECT process FROM holdfast_queue_wake_mark WHERE session = ${session} ORDER BY process LIMIT ${rowsMax})`),
  },
  {
    table: "holdfast_queue_completed",
    remove: (session, rowsMax) =>
      run(sql`
        DELETE FROM holdfast_queue_completed WHERE session = ${session} AND number IN (
          SELECT number FROM holdfast_queue_completed WHERE session = ${session} ORDER BY number LIMIT ${rowsMax})`),
  },
];

/** Removes batches with their items. */
function* removeQueued(session: number, rowsMax: number): Tx<number> {
  const items = yield* run(sql`
    DELETE FROM holdfast_queue_item WHERE key IN (
      SELECT i.key FROM (
        SELECT key FROM holdfast_queue_batch WHERE ${keysOf(session, 0)} ORDER BY session, key LIMIT ${rowsMax}) AS b
      JOIN holdfast_queue_item i ON i.batch = b.key LIMIT ${rowsMax})`);
  if (items >= rowsMax) return items;
  // Runs only when the items of these first batches are gone, since they are found through them.
  const batches = yield* run(sql`
    DELETE FROM holdfast_queue_batch WHERE key IN (
      SELECT key FROM holdfast_queue_batch WHERE ${keysOf(session, 0)} ORDER BY session, key LIMIT ${rowsMax - items})`);
  return items + batches;
}

/**
 * Removes up to `batchesMax` queued wakes of a deleted session, and returns their number. A smaller
 * number means that none are left.
 */
export function* removeWakes(session: number, batchesMax: number): Tx<number> {
  const found = yield* rows<{ readonly key: number }>(sql`
    SELECT key FROM holdfast_queue_batch
    WHERE session = ${session} AND process IS NOT NULL ORDER BY key LIMIT ${batchesMax}`);
  if (found.length === 0) return 0;
  const keys = integersOf(found.map(({ key }) => key));
  yield* run(sql`DELETE FROM holdfast_queue_item WHERE batch IN ${keys}`);
  return yield* run(sql`DELETE FROM holdfast_queue_batch WHERE key IN ${keys}`);
}
