import type { Clock } from "../../model/clock.ts";
import { durationMs } from "../../model/durations.ts";
import type { Duration } from "../../model/durations.ts";
import type { Entropy } from "../../model/entropy.ts";
import { HoldfastError } from "../../model/errors.ts";
import { valueCodec } from "../../model/value-codec.ts";
import type { ValueCodec } from "../../model/value-codec.ts";
import type { Database } from "../../sql/database.ts";
import type { StoreEnvironment } from "../execution/environment.ts";
import type { QueueBatch, QueueItem } from "./batch-row.ts";
import { sourceKeyMemoryUnlessTold } from "./purge.ts";

/** What a queue takes from its surroundings; the database's unless told. */
export interface QueueEnvironment extends StoreEnvironment {
  /** How long the source key of a batch that has left the queue is remembered: 30 days unless told. */
  readonly sourceKeyMemory?: Duration;
}

export interface QueueSurroundings {
  readonly database: Database;
  readonly clock: Clock;
  readonly entropy: Entropy;
  readonly codec: ValueCodec;
  readonly memoryMs: number;
}

export function queueSurroundings(
  database: Database,
  given: QueueEnvironment,
): QueueSurroundings {
  return {
    database,
    clock: given.clock ?? database.clock,
    entropy: given.entropy ?? database.entropy,
    codec: valueCodec({
      sha256Hex: database.sha256Hex,
      ...(given.payload && { payload: given.payload }),
      ...(given.valueLimits && { limits: given.valueLimits }),
    }),
    memoryMs: durationMs(
      given.sourceKeyMemory ?? sourceKeyMemoryUnlessTold,
      "sourceKeyMemory",
    ),
  };
}

/** A batch with its payloads read. @throws HoldfastError `CORRUPT_ROW` */
export function readBatch<B extends QueueBatch>(
  codec: ValueCodec,
  batch: B,
): Omit<B, "items"> & { readonly items: readonly QueueItem<unknown>[] } {
  return { ...batch, items: batch.items.map((item) => readItem(codec, item)) };
}

export function readItem(
  codec: ValueCodec,
  item: QueueItem,
): QueueItem<unknown> {
  try {
    return { ...item, payload: codec.decode(item.payload) };
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
