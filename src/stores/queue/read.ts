import { isPolicy } from "../../model/queue.ts";
import { keysOf } from "../../sql/dialect.ts";
import { rows } from "../../sql/operation.ts";
import type { Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { undamaged, type Damaged } from "../damage.ts";
import { liveFence } from "../lease/parts.ts";
import { list, pageOf, slicedByBytes } from "../list.ts";
import type { List, PageOptions, Place, Slice, SliceBounds } from "../list.ts";
import { sessionNamed } from "../session-name.ts";
import type { SessionName } from "../session-name.ts";
import { livingSession } from "../session-row.ts";
import type { SessionRef } from "../session-row.ts";
import { batchColumns, isClaimed, itemBytes, policyOf, withItems } from "./batch-row.ts";
import type { BatchRow, QueueBatch } from "./batch-row.ts";
import { checkedState, readBatch, readItem, type QueueContext } from "./context.ts";

export interface ListQueueOptions extends PageOptions {
  /** `pending` leaves out claimed batches; defaults to `all`. */
  readonly state?: "all" | "pending";
}

export interface ListedBatch extends QueueBatch<unknown> {
  readonly isClaimed: boolean;
}

interface QueueFilter {
  readonly session: SessionRef;
  readonly state: "all" | "pending";
}

interface FoundBatch {
  readonly row: BatchRow;
  readonly batch: QueueBatch<unknown>;
  readonly isClaimed: boolean;
}

/** A session's queue, in order. @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED` */
export const queueList: List<
  QueueContext,
  [session: SessionName, options?: ListQueueOptions],
  ListedBatch
> = list("listQueue", {
  table: "holdfast_queue_batch",
  given(_: QueueContext, session: SessionName, options?: ListQueueOptions) {
    const { filter, page } = pageOf(options, ["state"]);
    const state = checkedState(filter.state);
    return { filter: { session: sessionNamed(session), state }, page };
  },
  slice: queueSlice,
  keyOf: ({ row }: FoundBatch) => row.id,
  itemOf(_, { row, batch, isClaimed: claimed }) {
    policyOf(row);
    return { ...batch, isClaimed: claimed };
  },
});

function* queueSlice(
  context: QueueContext,
  { session: ref, state }: QueueFilter,
  bounds: SliceBounds,
): Tx<Slice<FoundBatch>> {
  const session = yield* livingSession(ref);
  const fence = yield* liveFence(session, context.clock.now());
  const hidden = state === "pending" ? fence : -1;
  const next = (after: Place | undefined) => sql`
    FROM holdfast_queue_batch b
    WHERE ${keysOf(session.key, Number(after?.[0] ?? 0))} AND (claim IS NULL OR claim_fence <> ${hidden} OR (turn IS NOT NULL AND ${hidden} = -1))
    ORDER BY session, key`;
  const slice = yield* slicedByBytes(
    bounds,
    ({ key }: BatchRow) => [key],
    function* (after, count) {
      const found = yield* rows<{ readonly bytes: number }>(sql`
        SELECT ${itemBytes} AS bytes ${next(after)} LIMIT ${count}`);
      return found.map(({ bytes }) => bytes);
    },
    function* (after, count) {
      return yield* rows<BatchRow>(sql`SELECT ${batchColumns} ${next(after)} LIMIT ${count}`);
    },
  );
  const found: FoundBatch[] = [];
  const damaged: Damaged[] = [];
  for (const [index, stored] of (yield* withItems(slice.rows)).entries()) {
    const row = slice.rows[index] as BatchRow;
    const batch = undamaged(() => readBatch(context, stored));
    if (batch === undefined) damaged.push(...unreadable(context, stored));
    else
      found.push({
        row,
        batch,
        isClaimed: isPolicy(row) && isClaimed(row, fence),
      });
  }
  return { next: slice.next, rows: found, damaged };
}

/** Names its unreadable items. */
function unreadable(context: QueueContext, { items }: QueueBatch): readonly Damaged[] {
  return items
    .filter((item) => undamaged(() => readItem(context, item)) === undefined)
    .map(({ id }) => ({ table: "holdfast_queue_item", key: id }));
}
