import type { Encoded } from "../../model/encoded.ts";
import { isPolicy } from "../../model/queue.ts";
import { keysOf } from "../../sql/dialect.ts";
import { rows, storeOperation } from "../../sql/operation.ts";
import type { Operation } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { liveFence } from "../lease/fence.ts";
import { livingSession } from "../session/session-row.ts";
import type { SessionRef } from "../session/session-row.ts";
import { batchColumns, isClaimed, withItems } from "./batch-row.ts";
import type { BatchRow, QueueBatch } from "./batch-row.ts";

export interface ListQueue {
  readonly session: SessionRef;
  /** Pending is what nobody has claimed, or whose claim no longer counts. */
  readonly state: "all" | "pending";
  /** The `order` of the last batch of the page before; 0 for the first page. */
  readonly after: number;
  readonly limit: number;
  readonly now: number;
}

export interface ListedBatch<P = Encoded> extends QueueBatch<P> {
  readonly isClaimed: boolean;
}

export interface QueuePage<P = Encoded> {
  readonly items: readonly ListedBatch<P>[];
  /** Rows that could not be read, and were passed over. */
  readonly damaged: readonly { readonly table: string; readonly key: string }[];
  /** Where to go on, when there are more. */
  readonly next: number | undefined;
}

/**
 * A page of a session's queue, in its order.
 *
 * @throws HoldfastError `SESSION_NOT_FOUND` or `SESSION_DELETED`.
 */
export const listQueue: Operation<ListQueue, QueuePage> = storeOperation(
  "listQueue",
  {
    key: (input: ListQueue) => input.session.id,
    *one({ session: ref, state, after, limit, now }) {
      const session = yield* livingSession(ref);
      const fence = yield* liveFence(session, now);
      const hidden = state === "pending" ? fence : -1;
      const found = yield* rows<BatchRow>(sql`
        SELECT ${batchColumns} FROM holdfast_queue_batch
        WHERE ${keysOf(session.key, after)} AND (claim IS NULL OR claim_fence <> ${hidden})
        ORDER BY session, key LIMIT ${limit + 1}`);
      const page = found.slice(0, limit);
      const readable = page.filter(isPolicy);
      const batches = yield* withItems(readable);
      return {
        items: batches.map((batch, index) => {
          const stored = readable[index];
          const claimed = stored !== undefined && isClaimed(stored, fence);
          return { ...batch, isClaimed: claimed };
        }),
        damaged: page
          .filter((batch) => !isPolicy(batch))
          .map(({ id }) => ({ table: "holdfast_queue_batch", key: id })),
        next: found.length > limit ? page.at(-1)?.key : undefined,
      };
    },
  },
);
