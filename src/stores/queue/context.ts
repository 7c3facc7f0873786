import { durationMs } from "../../model/durations.ts";
import type { Duration } from "../../model/durations.ts";
import { HoldfastError } from "../../model/errors.ts";
import type { Database } from "../../sql/database.ts";
import { storeContext } from "../context.ts";
import type { StoreContext, StoreOptions } from "../context.ts";
import type { QueueBatch, QueueItem } from "./batch-row.ts";

export interface QueueOptions extends StoreOptions {
  /** How long the source key of a batch that has left the queue is remembered; defaults to 30 days. */
  readonly sourceKeyMemory?: Duration;
}

export const sourceKeyMemoryDefault: Duration = "30 days";

export interface QueueContext extends StoreContext {
  readonly memoryMs: number;
}

export function queueContext(
  database: Database,
  options: QueueOptions | undefined,
): QueueContext {
  const context = storeContext(database, options, ["sourceKeyMemory"]);
  const { sourceKeyMemory = sourceKeyMemoryDefault } = options ?? {};
  return {
    ...context,
    memoryMs: durationMs(sourceKeyMemory, "sourceKeyMemory"),
  };
}

/** A batch with its payloads read. @throws HoldfastError `CORRUPT_ROW` */
export function readBatch<B extends QueueBatch>(
  context: Pick<StoreContext, "decode">,
  batch: B,
): Omit<B, "items"> & { readonly items: readonly QueueItem<unknown>[] } {
  return {
    ...batch,
    items: batch.items.map((item) => readItem(context, item)),
  };
}

/** @throws HoldfastError `CORRUPT_ROW` */
export function readItem(
  { decode }: Pick<StoreContext, "decode">,
  item: QueueItem,
): QueueItem<unknown> {
  try {
    return { ...item, payload: decode(item.payload) };
  } catch (cause) {
    throw new HoldfastError(
      "CORRUPT_ROW",
      `The payload of queue item ${item.id} cannot be read (see cause). ` +
        "If the payload codec and its keys are right, cancel the batch: it holds up what is behind it.",
      { table: "holdfast_queue_item", key: item.id },
      { cause },
    );
  }
}
