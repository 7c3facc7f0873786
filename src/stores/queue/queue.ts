import type { Database, WaitOptions } from "../../sql/database.ts";
import type { Lease } from "../lease/parts.ts";
import { lists, type Page } from "../list.ts";
import { writes, type Method } from "../method.ts";
import { sweepOptions, type SweepOptions } from "../removal.ts";
import { givenSession, type SessionName } from "../session-name.ts";
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
import { claimForTurn, givenClaimFor, type ClaimForOptions, type TurnWork } from "./claim-turn.ts";
import { completeWithoutCommit, givenComplete } from "./complete.ts";
import { queueContext, type QueueOptions } from "./context.ts";
import { enqueueBatch, givenEnqueue, shownEnqueued, type BatchDraft } from "./enqueue.ts";
import type { EnqueueOutcome, QueueClaimRef } from "./parts.ts";
import { purgeInSlices } from "./purge.ts";
import { queueList, type ListQueueOptions } from "./read.ts";
import { lockReadSession } from "../session-row.ts";
import { retryHeldBack } from "./retry.ts";
import { waitForWork } from "./wait.ts";

/** The queues of all sessions of a database: input that waits for a session's next turn. */
export interface Queue {
  /**
   * Appends a batch to a session's queue. Each source is accepted once, so the call may be repeated
   * with the same source.
   * @throws HoldfastError `BATCH_INVALID`, `NOT_SERIALIZABLE`, `VALUE_TOO_LARGE`, `SESSION_NOT_FOUND`, `SESSION_DELETED`
   * @example
   * await queue.enqueue("chat-7", { items: [{ kind: "user_message", payload: "hello" }], source: "http:42" });
   * @example
   * const enqueue = queue.enqueue.prepare("chat-7", { items: [{ kind: "user_message", payload: "hello" }] });
   * await database.write("order and notify", function* () {
   *   yield* run(sql`INSERT INTO app_order (id) VALUES (42)`);
   *   yield* enqueue();
   * });
   */
  readonly enqueue: Method<
    [session: SessionName, draft: BatchDraft, wait?: WaitOptions],
    EnqueueOutcome<unknown>
  >;
  /**
   * Removes a batch and returns it; undefined when it is unknown or claimed. Unreadable items are
   * left out of the answer.
   * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`
   */
  readonly cancel: Method<
    [session: SessionName, id: string, wait?: WaitOptions],
    QueueBatch<unknown> | undefined
  >;
  /**
   * A session's queue, in order.
   * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`, `CURSOR_INVALID`
   * @example
   * const { items, next } = await queue.list("chat-7", { state: "pending" });
   */
  readonly list: Method<
    [session: SessionName, options?: ListQueueOptions],
    Page<QueueBatch<unknown> & { readonly isClaimed: boolean }>
  >;
  /**
   * Claims the batches at the front that belong to one turn, at most `limit`. Claims nothing when
   * the front is a command or must wait for the boundary.
   * @throws HoldfastError `LEASE_LOST`, `SESSION_NOT_FOUND`, `SESSION_DELETED`, or `CORRUPT_ROW` for an unreadable payload, in which case nothing stays claimed
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
   * Claims exactly these batches, provided that they are at the front in this order.
   * @throws HoldfastError `LEASE_LOST`, `CORRUPT_ROW`, `SESSION_NOT_FOUND`, `SESSION_DELETED`
   */
  readonly claimBatches: Method<
    [lease: Lease, ids: readonly string[], options?: ClaimOptions],
    ClaimedWork | undefined
  >;
  /**
   * Claims work for the open turn of a session with an agent, inside a transaction of the run that
   * takes that turn: the front of the queue, which is turn work or, at the boundary `idle`, one
   * command. Batches that three turns have not consumed come separately. Claims are consumed by
   * `sessions.commit`. They return to the queue when the run ends, and not before.
   * @throws HoldfastError `LEASE_LOST`, `SESSION_NOT_FOUND`, `SESSION_DELETED`, or `CORRUPT_ROW` for an unreadable payload: then nothing is claimed
   * @example
   * const begin = queue.claimFor.prepare("chat-7");
   * const work = await ctx.transaction("begin", function* () {
   *   const claimed = yield* begin();
   *   return claimed?.ref;
   * });
   */
  readonly claimFor: Method<
    [session: SessionName, options?: ClaimForOptions],
    TurnWork | undefined
  >;
  /**
   * Lets the next turn claim the batches that are held back after a turn did not consume them, as
   * sending work does, and starts that turn unless one is open. Returns the number of batches.
   * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`
   */
  readonly retry: Method<[session: SessionName, wait?: WaitOptions], number>;
  /**
   * Releases claimed batches, so that they can be claimed again at once. Returns their number.
   * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`
   */
  readonly abandon: Method<
    [session: SessionName, claim: QueueClaimRef, wait?: WaitOptions],
    number
  >;
  /**
   * Consumes claimed work outside any commit, for work that adds nothing to its session. May be
   * repeated under the same lease, until 256 other claims have been completed this way.
   * @throws HoldfastError `LEASE_LOST`, `CLAIM_LOST`, `SESSION_NOT_FOUND`, `SESSION_DELETED`
   */
  readonly completeWithoutCommit: Method<
    [lease: Lease, claims: readonly QueueClaimRef[], wait?: WaitOptions],
    void
  >;
  /**
   * Resolves when there is something to claim at the boundary. Another worker may claim it first:
   * on an empty claim, wait again.
   * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`, `DEADLINE_EXCEEDED`, `ABORTED`, `DATABASE_CLOSED`
   */
  waitForWork(session: SessionName, options?: Omit<ClaimOptions, "key">): Promise<void>;
  /**
   * Removes source keys that are older than the source memory, in small transactions. `collect` of
   * `maintenance` does this too.
   * @throws HoldfastError `ABORTED`
   */
  purgeSourceKeys(
    options?: SweepOptions<{ readonly sourceKeys: number }>,
  ): Promise<{ readonly sourceKeys: number }>;
}

/** The queues of a database. The returned object holds only subscriptions, so one database can have any number of them. */
export function queue(database: Database, options?: QueueOptions): Queue {
  const context = queueContext(database, options);
  return {
    enqueue: writes(context, enqueueBatch, givenEnqueue, shownEnqueued),
    cancel: writes(context, cancelBatch, givenCancel, shownCancelled),
    list: lists(context, queueList, lockReadSession),
    claimTurn: writes(context, claimWork, givenClaimTurn),
    claimCommand: writes(context, claimWork, givenClaimCommand),
    claimBatches: writes(context, claimWork, givenClaimBatches),
    claimFor: writes(context, claimForTurn, givenClaimFor),
    retry: writes(context, retryHeldBack, givenSession),
    abandon: writes(context, abandonClaim, givenAbandon),
    completeWithoutCommit: writes(context, completeWithoutCommit, givenComplete),
    waitForWork: (session, given) => waitForWork(context, session, given),
    purgeSourceKeys: async (given) =>
      purgeInSlices(context, context.clock.now() - context.memoryMs, sweepOptions(given)),
  };
}
