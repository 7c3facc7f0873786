import { instantOf } from "../../model/time/clock.ts";
import {
  checkedPolicy,
  classOf,
  type Delivery,
  type QueueItemDraft,
  type Slot,
} from "../../model/queue.ts";
import { checkedCount, checkedInstant, checkedText, draftOf } from "../../model/shape.ts";
import { newToken } from "../../model/ids/token.ts";
import type { WaitOptions } from "../../sql/database.ts";
import { announce, row, storeOperation, type Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { onlyWait, type Call } from "../method.ts";
import { sessionNamed, type SessionName } from "../session-name.ts";
import { lockedSession, type SessionRoot } from "../session-row.ts";
import { batchColumns, withItems, type BatchRow, type QueueSource } from "./batch-row.ts";
import { readBatch, type QueueContext } from "./context.ts";
import {
  batchesById,
  insertBatch,
  joinBatch,
  type EnqueueBatch,
  type EnqueueOutcome,
  wasConsumed,
} from "./parts.ts";
import { queueWork } from "./topics.ts";
import { beginTurn, releaseHeldBack } from "./turn-row.ts";

/** Items that enter a queue together. */
export interface BatchDraft {
  /** 1 to 256 items of one class. */
  readonly items: readonly QueueItemDraft[];
  /**
   * The name of its origin. Enqueuing twice from one source enqueues once, even after the batch was
   * consumed.
   */
  readonly source?: QueueSource;
  /** Defaults to `earliestSafeBoundary`. */
  readonly delivery?: Delivery;
  /** Defaults to `exclusive`. */
  readonly slot?: Slot;
  readonly mergeKey?: string;
  /** The earliest instant at which it can be claimed, in milliseconds since 1970. */
  readonly availableAt?: number;
}

/** @throws HoldfastError `BATCH_INVALID`, `NAME_INVALID`, `OPTION_INVALID`, `NOT_SERIALIZABLE`, `VALUE_TOO_LARGE` */
export function givenEnqueue(
  { clock, entropy, encodeChecked }: QueueContext,
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
      mergeKey: mergeKey === undefined ? null : checkedText("A merge key", mergeKey),
    }),
    availableAt: checkedInstant("availableAt", availableAt),
    items: items.map((item) => {
      const { kind, payload } = draftOf("an item", item, itemNames);
      return {
        kind: checkedText("The kind of an item", kind),
        payload: encodeChecked(payload),
      };
    }),
    at: instantOf(() => clock.now()),
  };
  return { input, wait: onlyWait(wait) };
}

const itemNames = ["kind", "class", "payload"] as const;
const sourceKeyCharactersMax = 512;

function checkedSource(source: QueueSource): QueueSource {
  if (typeof source === "string")
    return checkedText("A source key", source, sourceKeyCharactersMax);
  const { process, sequence } = draftOf("source", source, ["process", "sequence"]);
  return {
    process: checkedText("A process", process, sourceKeyCharactersMax),
    sequence: checkedCount("A sequence", sequence),
  };
}

/**
 * Appends a batch to a session's queue, once per source. Needs no lease: any caller may give a
 * session work.
 *
 * @throws HoldfastError `SESSION_NOT_FOUND` or `SESSION_DELETED`.
 */
export const enqueueBatch = storeOperation("enqueueBatch", {
  snapshotSafe: true,
  key: (input) => input.session.id,
  *one(context: QueueContext, input: EnqueueBatch): Tx<EnqueueOutcome> {
    const { clock, memoryMs } = context;
    const session = yield* lockedSession(input.session);
    const { source } = input;
    if (source !== null) {
      const [batch] = yield* withItems(yield* queuedFrom(session.key, source));
      if (batch !== undefined) return { kind: "duplicate", batch };
      const forgottenUntil = clock.now() - memoryMs;
      if (yield* wasConsumed(session.key, source, forgottenUntil)) return { kind: "consumed" };
    }
    const joined = yield* joinBatch(session, input);
    if (joined !== undefined) return joined;
    const queued = yield* insertBatch(session.key, input);
    if (queued !== undefined) {
      yield* announce(queueWork, session.id);
      if (session.agent !== null) yield* send(context, session, input);
      return { kind: "queued", batch: queued };
    }
    // The id is generated when the call is made, so the same id means the same call again.
    const [batch] = yield* withItems(yield* batchesById(session.key, [input.id]));
    return batch === undefined ? { kind: "consumed" } : { kind: "duplicate", batch };
  },
});

/**
 * Starts the turn of an agent. Turn work that a caller sends takes the batches along that are held
 * back after a failed turn.
 */
function* send(
  context: QueueContext,
  session: SessionRoot,
  { at, availableAt: dueAt, policy, source }: EnqueueBatch,
): Tx<void> {
  const isWake = source !== null && typeof source !== "string";
  if (policy.class === "turn" && !isWake) yield* releaseHeldBack(session.key);
  yield* beginTurn(context, session, { at, dueAt });
}

/** @throws HoldfastError `CORRUPT_ROW` for an unreadable batch that was queued before. */
export function shownEnqueued(
  context: QueueContext,
  outcome: EnqueueOutcome,
): EnqueueOutcome<unknown> {
  return outcome.kind === "consumed"
    ? outcome
    : { ...outcome, batch: readBatch(context, outcome.batch) };
}

function* queuedFrom(session: number, source: QueueSource): Tx<readonly BatchRow[]> {
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
