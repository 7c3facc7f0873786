import { instantOf } from "../../model/clock.ts";
import type { Encoded } from "../../model/encoded.ts";
import { checkedPolicy, classOf } from "../../model/queue.ts";
import type { Delivery, QueueItemDraft, Slot } from "../../model/queue.ts";
import { newToken } from "../../model/token.ts";
import {
  checkedCount,
  checkedInstant,
  checkedText,
  givenObject,
  optionsOf,
} from "../../model/shape.ts";
import type { WaitOptions } from "../../sql/database.ts";
import { sessionNamed } from "../session/session-name.ts";
import type { SessionName } from "../session/session-name.ts";
import { checkedRowsPerSlice } from "../slices.ts";
import type { QueueBatch, QueueItem, QueueSource } from "./batch-row.ts";
import { cancelBatch } from "./cancel.ts";
import { checkedState } from "./checks.ts";
import { enqueueBatch } from "./enqueue.ts";
import type { EnqueueBatch, EnqueueOutcome } from "./enqueue.ts";
import { readBatch, readItem } from "./environment.ts";
import type { QueueSurroundings } from "./environment.ts";
import { purgeInSlices } from "./purge.ts";
import { listQueue } from "./read.ts";
import type { ListedBatch, QueuePage } from "./read.ts";

/** What goes into a queue together. */
export interface BatchDraft {
  /** 1 to 256 of one class. */
  readonly items: readonly QueueItemDraft[];
  /** Enqueuing twice from one source is enqueuing once, also after the batch was consumed. */
  readonly source?: QueueSource;
  /** `earliestSafeBoundary` unless told. */
  readonly delivery?: Delivery;
  /** `exclusive` unless told. */
  readonly slot?: Slot;
  readonly mergeKey?: string;
  /** Not before this instant, in milliseconds since 1970. */
  readonly availableAt?: number;
}

export interface ListQueueOptions extends WaitOptions {
  /** `pending` leaves out what somebody works on; `all` unless told. */
  readonly state?: "all" | "pending";
  /** The `next` of the page before. */
  readonly after?: number;
  /** 1 to 1,000 batches; 100 unless told. */
  readonly limit?: number;
}

export interface PurgeQueueOptions {
  readonly signal?: AbortSignal;
  /** Rows per transaction: 500 unless told. */
  readonly rowsPerSlice?: number;
}

/** What is in a queue, and how it gets there. */
export interface QueueContents {
  /**
   * Puts a batch at the end of a session's queue.
   * @throws HoldfastError `BATCH_INVALID`, `NOT_SERIALIZABLE`, `SESSION_NOT_FOUND`, `SESSION_DELETED`
   * @example await queue.enqueue("chat-7", { items: [{ kind: "user_message", payload: "hello" }], source: "http:42" });
   */
  enqueue(
    session: SessionName,
    draft: BatchDraft,
    wait?: WaitOptions,
  ): Promise<EnqueueOutcome<unknown>>;
  /**
   * Takes a batch out and returns it; undefined when there is none or somebody
   * works on it. Items that cannot be read are left out of the answer.
   */
  cancel(
    session: SessionName,
    id: string,
    wait?: WaitOptions,
  ): Promise<QueueBatch<unknown> | undefined>;
  /** A page of a queue, in its order. What cannot be read is named. */
  list(
    session: SessionName,
    options?: ListQueueOptions,
  ): Promise<QueuePage<unknown>>;
  /** Forgets source keys that are older than the memory, in small transactions; tells how many. `collect` of `maintenance` does it too. */
  purgeSourceKeys(options?: PurgeQueueOptions): Promise<number>;
}

export function queueContents(around: QueueSurroundings): QueueContents {
  const { database, clock, codec, memoryMs } = around;
  return {
    async enqueue(session, draft, wait) {
      const input = newBatch(around, session, draft);
      const outcome = await database.write(enqueueBatch, input, wait);
      return outcome.kind === "consumed"
        ? outcome
        : { ...outcome, batch: readBatch(codec, outcome.batch) };
    },
    async cancel(session, id, wait) {
      const batch = await database.write(
        cancelBatch,
        {
          session: sessionNamed(session),
          id: checkedText("The id of a batch", id),
          now: () => clock.now(),
        },
        wait,
      );
      if (batch === undefined) return undefined;
      return { ...batch, items: readableItems(around, batch).items };
    },
    async list(session, options) {
      const { after = 0, limit = 100, ...rest } = optionsOf(options);
      const { state, signal, timeout } = rest;
      const found = await database.read(
        listQueue,
        {
          session: sessionNamed(session),
          state: checkedState(state),
          after: checkedCount("after", after, {
            min: 0,
            max: Number.MAX_SAFE_INTEGER,
          }),
          limit: checkedCount("limit", limit, { min: 1, max: 1_000 }),
          now: clock.now(),
        },
        { signal, timeout },
      );
      return readablePage(around, found);
    },
    async purgeSourceKeys(options) {
      const { signal, rowsPerSlice } = optionsOf(options);
      const rowsMax = checkedRowsPerSlice(rowsPerSlice);
      const until = clock.now() - memoryMs;
      return purgeInSlices(database, { until, rowsMax, signal });
    },
  };
}

function newBatch(
  { clock, entropy, codec, memoryMs }: QueueSurroundings,
  session: SessionName,
  draft: BatchDraft,
): EnqueueBatch {
  const {
    items,
    source,
    mergeKey,
    availableAt = 0,
  } = givenObject("the batch", draft);
  const { delivery = "earliestSafeBoundary", slot = "exclusive" } = draft;
  const now = instantOf(() => clock.now());
  return {
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
      payload: codec.encode(payload) as Encoded,
    })),
    now,
    forgottenUntil: now - memoryMs,
  };
}

const sourceKeyCharactersMax = 512;

function checkedSource(source: QueueSource): QueueSource {
  if (typeof source === "string")
    return checkedText("A source key", source, sourceKeyCharactersMax);
  const { process, sequence } = givenObject("source", source);
  return {
    process: checkedText("A process", process, sourceKeyCharactersMax),
    sequence: checkedCount("A sequence", sequence, {
      min: 0,
      max: Number.MAX_SAFE_INTEGER,
    }),
  };
}

type Damaged = QueuePage["damaged"][number];

function readablePage(
  around: QueueSurroundings,
  page: QueuePage,
): QueuePage<unknown> {
  const batches: ListedBatch<unknown>[] = [];
  const damaged: Damaged[] = [...page.damaged];
  for (const batch of page.items) {
    const read = readableItems(around, batch);
    damaged.push(...read.damaged);
    if (read.damaged.length === 0)
      batches.push({ ...batch, items: read.items });
  }
  return { items: batches, damaged, next: page.next };
}

function readableItems(
  { codec }: QueueSurroundings,
  batch: QueueBatch,
): {
  readonly items: readonly QueueItem<unknown>[];
  readonly damaged: readonly Damaged[];
} {
  const items: QueueItem<unknown>[] = [];
  const damaged: Damaged[] = [];
  for (const item of batch.items) {
    try {
      items.push(readItem(codec, item));
    } catch {
      damaged.push({ table: "holdfast_queue_item", key: item.id });
    }
  }
  return { items, damaged };
}
