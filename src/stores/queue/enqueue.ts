import { instantOf } from "../../model/clock.ts";
import type { Encoded } from "../../model/encoded.ts";
import { checkedPolicy, classOf } from "../../model/queue.ts";
import type {
  Delivery,
  QueueItemDraft,
  QueuePolicy,
  Slot,
} from "../../model/queue.ts";
import {
  checkedCount,
  checkedInstant,
  checkedText,
  draftOf,
} from "../../model/shape.ts";
import { newToken } from "../../model/token.ts";
import type { WaitOptions } from "../../sql/database.ts";
import { announce, row, run, storeOperation } from "../../sql/operation.ts";
import type { StoreOperation, Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { onlyWait } from "../method.ts";
import type { Call } from "../method.ts";
import { sessionNamed } from "../session/session-name.ts";
import type { SessionName } from "../session/session-name.ts";
import { lockedSession } from "../session/session-row.ts";
import type { SessionRef, SessionRoot } from "../session/session-row.ts";
import { batchColumns, itemId, withItems } from "./batch-row.ts";
import type { BatchRow, QueueBatch, QueueSource } from "./batch-row.ts";
import { readBatch } from "./context.ts";
import type { QueueContext } from "./context.ts";
import { wasConsumed } from "./consumed.ts";
import { queueWork } from "./topics.ts";

/** What goes into a queue together. */
export interface BatchDraft {
  /** 1 to 256 of one class. */
  readonly items: readonly QueueItemDraft[];
  /** Enqueuing twice from one source is enqueuing once, also after the batch was consumed. */
  readonly source?: QueueSource;
  /** Defaults to `earliestSafeBoundary`. */
  readonly delivery?: Delivery;
  /** Defaults to `exclusive`. */
  readonly slot?: Slot;
  readonly mergeKey?: string;
  /** Not before this instant, in milliseconds since 1970. */
  readonly availableAt?: number;
}

export interface EnqueueBatch {
  readonly session: SessionRef;
  readonly id: string;
  readonly source: QueueSource | null;
  /** Already checked; see `classOf` and `checkedPolicy`. */
  readonly policy: QueuePolicy;
  /** Not to be taken before; 0 for at once. */
  readonly availableAt: number;
  readonly items: readonly {
    readonly kind: string;
    readonly payload: Encoded;
  }[];
  /** When it was enqueued. */
  readonly at: number;
  /** Joins a batch of the same key that nobody has claimed, instead of being queued itself. */
  readonly dedupeKey?: string | null;
}

/** @throws HoldfastError `BATCH_INVALID`, `NAME_INVALID`, `OPTION_INVALID`, `NOT_SERIALIZABLE`, `VALUE_TOO_LARGE` */
export function givenEnqueue(
  { clock, entropy, encode }: QueueContext,
  session: SessionName,
  draft: BatchDraft,
  wait?: WaitOptions,
): Call<EnqueueBatch> {
  const {
    items,
    source,
    mergeKey,
    availableAt = 0,
    ...policy
  } = draftOf("the batch", draft, [
    "items",
    "source",
    "delivery",
    "slot",
    "mergeKey",
    "availableAt",
  ]);
  const { delivery = "earliestSafeBoundary", slot = "exclusive" } = policy;
  const input = {
    session: sessionNamed(session),
    id: `batch_${newToken(entropy)}`,
    source: source === undefined ? null : checkedSource(source),
    policy: checkedPolicy({
      class: classOf(items),
      delivery,
      slot,
      mergeKey:
        mergeKey === undefined ? null : checkedText("A merge key", mergeKey),
    }),
    availableAt: checkedInstant("availableAt", availableAt),
    items: items.map(({ kind, payload }) => ({
      kind: checkedText("The kind of an item", kind),
      payload: encode(payload),
    })),
    at: instantOf(() => clock.now()),
  };
  return { input, wait: onlyWait(wait) };
}

const sourceKeyCharactersMax = 512;

function checkedSource(source: QueueSource): QueueSource {
  if (typeof source === "string")
    return checkedText("A source key", source, sourceKeyCharactersMax);
  const { process, sequence } = draftOf("source", source, [
    "process",
    "sequence",
  ]);
  return {
    process: checkedText("A process", process, sourceKeyCharactersMax),
    sequence: checkedCount("A sequence", sequence),
  };
}

type WakeSource = Exclude<QueueSource, string>;

export type EnqueueOutcome<P = Encoded> =
  | { readonly kind: "queued"; readonly batch: QueueBatch<P> }
  /** Its source has a batch in the queue: that one stays as it is. */
  | { readonly kind: "duplicate"; readonly batch: QueueBatch<P> }
  /** A batch of its dedupe key waits already: that one stands for both. */
  | { readonly kind: "coalesced"; readonly batch: QueueBatch<P> }
  /** Its source had a batch, which has left the queue. */
  | { readonly kind: "consumed" };

/**
 * Puts a batch at the end of a session's queue, once for each source. Needs no
 * lease: anybody may give a session something to do.
 *
 * @throws HoldfastError `SESSION_NOT_FOUND` or `SESSION_DELETED`.
 */
export const enqueueBatch: StoreOperation<
  QueueContext,
  EnqueueBatch,
  EnqueueOutcome
> = storeOperation("enqueueBatch", {
  snapshotSafe: true,
  key: (input: EnqueueBatch) => input.session.id,
  *one({ clock, memoryMs }: QueueContext, input) {
    const session = yield* lockedSession(input.session);
    const { source } = input;
    if (source !== null) {
      const [batch] = yield* withItems(yield* queuedFrom(session.key, source));
      if (batch !== undefined) return { kind: "duplicate", batch };
      const forgottenUntil = clock.now() - memoryMs;
      if (yield* wasConsumed(session.key, source, forgottenUntil))
        return { kind: "consumed" };
    }
    return (
      (yield* joinedBatch(session, input)) ??
      (yield* queuedBatch(session, input))
    );
  },
});

/** @throws HoldfastError `CORRUPT_ROW` when the batch that was queued before cannot be read. */
export function shownEnqueued(
  context: QueueContext,
  outcome: EnqueueOutcome,
): EnqueueOutcome<unknown> {
  return outcome.kind === "consumed"
    ? outcome
    : { ...outcome, batch: readBatch(context, outcome.batch) };
}

/** What becomes of a batch that is not known yet. */
export type NewlyEnqueued = Extract<
  EnqueueOutcome,
  { readonly kind: "queued" | "coalesced" }
>;

/**
 * Enqueues a wake that is new, as its process knows: what others have enqueued
 * by hand from the same source, or have dealt with, does not stand for it.
 *
 * @throws HoldfastError `SESSION_NOT_FOUND` or `SESSION_DELETED`.
 */
export function* enqueueWake(
  input: EnqueueBatch & { readonly source: WakeSource },
): Tx<NewlyEnqueued> {
  const session = yield* lockedSession(input.session);
  const joined = yield* joinedBatch(session, input);
  if (joined !== undefined) return joined;
  const { process, sequence } = input.source;
  // What has come by hand stays, and is of no source from now on: there is one batch for each.
  yield* run(sql`
    UPDATE holdfast_queue_batch SET process = NULL, sequence = NULL
    WHERE session = ${session.key} AND process = ${process} AND sequence = ${sequence}`);
  return yield* queuedBatch(session, input);
}

function* joinedBatch(
  session: SessionRoot,
  { dedupeKey = null }: EnqueueBatch,
): Tx<NewlyEnqueued | undefined> {
  if (dedupeKey === null) return undefined;
  const [batch] = yield* withItems(yield* waitingUnder(session, dedupeKey));
  return batch && { kind: "coalesced", batch };
}

function* queuedBatch(
  session: SessionRoot,
  input: EnqueueBatch,
): Tx<NewlyEnqueued> {
  const batch = yield* insertBatch(session.key, input);
  yield* announce(queueWork, session.id);
  return { kind: "queued", batch };
}

function* queuedFrom(
  session: number,
  source: QueueSource,
): Tx<readonly BatchRow[]> {
  const found =
    typeof source === "string"
      ? yield* row<BatchRow>(sql`
          SELECT ${batchColumns} FROM holdfast_queue_batch
          WHERE session = ${session} AND source_key = ${source}`)
      : yield* row<BatchRow>(sql`
          SELECT ${batchColumns} FROM holdfast_queue_batch
          WHERE session = ${session} AND process = ${source.process} AND sequence = ${source.sequence}`);
  return found === undefined ? [] : [found];
}

/**
 * What is queued under a dedupe key and claimed by nobody. A claim whose lease
 * has run out by our clock counts all the same: its holder may have read its
 * own clock before, and complete the batch after us with what we joined to it.
 */
function* waitingUnder(
  session: SessionRoot,
  dedupeKey: string,
): Tx<readonly BatchRow[]> {
  const found = yield* row<BatchRow>(sql`
    SELECT ${batchColumns} FROM holdfast_queue_batch
    WHERE session = ${session.key} AND dedupe_key = ${dedupeKey} AND claim IS NULL
    ORDER BY key LIMIT 1`);
  return found === undefined ? [] : [found];
}

function* insertBatch(session: number, input: EnqueueBatch): Tx<QueueBatch> {
  const { id, source, policy, availableAt, items, at } = input;
  const wake = typeof source === "object" ? source : null;
  const inserted = yield* row<{ readonly key: number }>(sql`
    INSERT INTO holdfast_queue_batch
      (id, session, source_key, process, sequence, dedupe_key, class, delivery, slot, merge_key, available_at, enqueued_at)
    VALUES (${id}, ${session}, ${typeof source === "string" ? source : null},
      ${wake?.process ?? null}, ${wake?.sequence ?? null}, ${input.dedupeKey ?? null},
      ${policy.class}, ${policy.delivery}, ${policy.slot}, ${policy.mergeKey}, ${availableAt}, ${at})
    RETURNING key`);
  const order = inserted?.key ?? 0;
  for (const [ordinal, { kind, payload }] of items.entries())
    yield* run(sql`
      INSERT INTO holdfast_queue_item (batch, ordinal, kind, payload)
      VALUES (${order}, ${ordinal}, ${kind}, ${payload})`);
  return {
    ...policy,
    id,
    order,
    source,
    availableAt,
    enqueuedAt: at,
    items: items.map((item, ordinal) => ({ id: itemId(id, ordinal), ...item })),
  };
}
