import type { Database, WaitOptions } from "../../sql/database.ts";
import type { Lease } from "../lease/parts.ts";
import { lists, type Page } from "../list.ts";
import { writes, type Method } from "../method.ts";
import { sweepOptions, type SweepOptions } from "../removal.ts";
import type { SessionName } from "../session-name.ts";
import type { QueueBatch } from "./batch-row.ts";
import { cancelBatch, givenCancel, shownCancelled } from "./cancel.ts";
import {
  abandonClaim,
  claimWork,
  givenAbandon,
  givenClaimBatches,
  givenClaimCommand,
  givenClaimTurn,
  type ClaimCommandOptions,
  type ClaimedWork,
  type ClaimOptions,
  type ClaimTurnOptions,
} from "./claim.ts";
import { completeWithoutCommit, givenComplete } from "./complete.ts";
import { queueContext, type QueueOptions } from "./context.ts";
import { enqueueBatch, givenEnqueue, shownEnqueued, type BatchDraft } from "./enqueue.ts";
import type { EnqueueOutcome, QueueClaimRef } from "./parts.ts";
import { purgeInSlices } from "./purge.ts";
import { queueList, type ListQueueOptions } from "./read.ts";
import { waitForWork } from "./wait.ts";

/** The queues of all sessions of a database: what waits for a session's next turn. */
export interface Queue {
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
   * Takes a batch out and returns it; undefined when there is none or it is
   * claimed. Items that cannot be read are left out of the answer.
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
    Page<QueueBatch<unknown> & { readonly isClaimed: boolean }>
  >;
  /**
   * Claims the batches at the front that go into one turn: at most `limit`, or
   * nothing when the front is a command or has to wait for the boundary.
   * @throws HoldfastError `LEASE_LOST`, `SESSION_NOT_FOUND`, `SESSION_DELETED`, or `CORRUPT_ROW` when a payload cannot be read: then nothing stays claimed
   * @example
   * const work = await queue.claimTurn(lease, { key: turnId });
   * if (work !== undefined) await sessions.commit(lease.session, { turn: turnId, fence: lease, claims: [work.ref], nodes });
   */
  readonly claimTurn: Method<[lease: Lease, options?: ClaimTurnOptions], ClaimedWork | undefined>;
  /**
   * Claims the batch at the front if it is a command.
   * @throws HoldfastError `LEASE_LOST`, `CORRUPT_ROW`, `SESSION_NOT_FOUND`, `SESSION_DELETED`
   */
  readonly claimCommand: Method<
    [lease: Lease, options?: ClaimCommandOptions],
    ClaimedWork | undefined
  >;
  /**
   * Claims exactly these batches if they are at the front in this order.
   * @throws HoldfastError `LEASE_LOST`, `CORRUPT_ROW`, `SESSION_NOT_FOUND`, `SESSION_DELETED`
   */
  readonly claimBatches: Method<
    [lease: Lease, ids: readonly string[], options?: ClaimOptions],
    ClaimedWork | undefined
  >;
  /**
   * Releases claimed batches, to be claimed again at once; tells how many.
   * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`
   */
  readonly abandon: Method<
    [session: SessionName, claim: QueueClaimRef, wait?: WaitOptions],
    number
  >;
  /**
   * Consumes claimed work outside of any commit: for work that leaves nothing
   * behind in its session. May be repeated under the same lease, until 256
   * other claims have been completed in this way.
   * @throws HoldfastError `LEASE_LOST`, `CLAIM_LOST`, `SESSION_NOT_FOUND`, `SESSION_DELETED`
   */
  readonly completeWithoutCommit: Method<
    [lease: Lease, claims: readonly QueueClaimRef[], wait?: WaitOptions],
    void
  >;
  /**
   * Resolves when there is something to claim at the boundary. Another worker
   * may be faster: claim, and wait again.
   * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`, `DEADLINE_EXCEEDED`, `ABORTED`, `DATABASE_CLOSED`
   */
  waitForWork(session: SessionName, options?: Omit<ClaimOptions, "key">): Promise<void>;
  /**
   * Forgets source keys that are older than the memory, in small transactions.
   * `collect` of `maintenance` does it too.
   * @throws HoldfastError `ABORTED`
   */
  purgeSourceKeys(
    options?: SweepOptions<{ readonly sourceKeys: number }>,
  ): Promise<{ readonly sourceKeys: number }>;
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
    claimTurn: writes(context, claimWork, givenClaimTurn),
    claimCommand: writes(context, claimWork, givenClaimCommand),
    claimBatches: writes(context, claimWork, givenClaimBatches),
    abandon: writes(context, abandonClaim, givenAbandon),
    completeWithoutCommit: writes(context, completeWithoutCommit, givenComplete),
    waitForWork: (session, given) => waitForWork(context, session, given),
    purgeSourceKeys: async (given) =>
      purgeInSlices(context, context.clock.now() - context.memoryMs, sweepOptions(given)),
  };
}
