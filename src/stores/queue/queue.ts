import type { WaitOptions } from "../../sql/database.ts";
import type { Database } from "../../sql/database.ts";
import { lists } from "../list.ts";
import type { Page } from "../list.ts";
import { writes } from "../method.ts";
import type { Method } from "../method.ts";
import { sweepOptions } from "../removal.ts";
import type { SweepOptions } from "../removal.ts";
import type { SessionName } from "../session/session-name.ts";
import type { QueueBatch } from "./batch-row.ts";
import { cancelBatch, givenCancel, shownCancelled } from "./cancel.ts";
import { queueClaims } from "./claiming.ts";
import type { QueueClaims } from "./claiming.ts";
import { queueContext } from "./context.ts";
import type { QueueOptions } from "./context.ts";
import { enqueueBatch, givenEnqueue, shownEnqueued } from "./enqueue.ts";
import type { BatchDraft, EnqueueOutcome } from "./enqueue.ts";
import { purgeInSlices } from "./purge.ts";
import type { PurgeReport } from "./purge.ts";
import { queueList } from "./read.ts";
import type { ListedBatch, ListQueueOptions } from "./read.ts";

/** The queues of all sessions of a database: what waits for a session's next turn. */
export interface Queue extends QueueClaims {
  /**
   * Puts a batch at the end of a session's queue. Once for each source, so it
   * may be repeated with the same one.
   * @throws HoldfastError `BATCH_INVALID`, `NOT_SERIALIZABLE`, `VALUE_TOO_LARGE`, `SESSION_NOT_FOUND`, `SESSION_DELETED`
   * @example
   * await queue.enqueue("chat-7", { items: [{ kind: "user_message", payload: "hello" }], source: "http:42" });
   * @example
   * const enqueue = queue.enqueue.prepare("chat-7", { items: [{ kind: "user_message", payload: "hello" }] });
   * await database.write("order and say so", function* () {
   *   yield* run(sql`INSERT INTO app_order (id) VALUES (42)`);
   *   yield* enqueue();
   * });
   */
  readonly enqueue: Method<
    [session: SessionName, draft: BatchDraft, wait?: WaitOptions],
    EnqueueOutcome<unknown>
  >;
  /**
   * Takes a batch out and returns it; undefined when there is none or somebody
   * works on it. Items that cannot be read are left out of the answer.
   * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`
   */
  readonly cancel: Method<
    [session: SessionName, id: string, wait?: WaitOptions],
    QueueBatch<unknown> | undefined
  >;
  /**
   * A queue, in its order.
   * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`, `CURSOR_INVALID`
   * @example
   * const { items, next } = await queue.list("chat-7", { state: "pending" });
   */
  readonly list: Method<
    [session: SessionName, options?: ListQueueOptions],
    Page<ListedBatch>
  >;
  /**
   * Forgets source keys that are older than the memory, in small transactions.
   * `collect` of `maintenance` does it too.
   * @throws HoldfastError `ABORTED`
   */
  purgeSourceKeys(options?: SweepOptions<PurgeReport>): Promise<PurgeReport>;
}

/**
 * Holds nothing but subscriptions, so there may be any number of these over
 * one database.
 */
export function queue(database: Database, options?: QueueOptions): Queue {
  const context = queueContext(database, options);
  return {
    enqueue: writes(context, enqueueBatch, givenEnqueue, shownEnqueued),
    cancel: writes(context, cancelBatch, givenCancel, shownCancelled),
    list: lists(context, queueList),
    purgeSourceKeys: async (given) =>
      purgeInSlices(
        context,
        context.clock.now() - context.memoryMs,
        sweepOptions(given),
      ),
    ...queueClaims(context),
  };
}
