import { durationMs, type Duration } from "../../model/time/durations.ts";
import { isSealed } from "../../model/values/payload-mark.ts";
import { HoldfastError } from "../../model/errors.ts";
import { batchesPerClaimMax, type Boundary } from "../../model/queue.ts";
import { checkedCount, checkedText, draftOf, isStorable } from "../../model/shape.ts";
import type { Database } from "../../sql/database.ts";
import { isUnchanged, storeContext, type StoreContext, type StoreOptions } from "../context.ts";
import { changedRow } from "../damage.ts";
import type { QueueBatch, QueueItem } from "./batch-row.ts";
import type { QueueClaimRef } from "./parts.ts";

export interface QueueOptions extends StoreOptions {
  /**
   * The time for which the source key of a batch that left the queue is remembered; defaults to 30
   * days.
   */
  readonly sourceKeyMemory?: Duration;
}

const sourceKeyMemoryDefault: Duration = "30 days";

export interface QueueContext extends StoreContext {
  readonly memoryMs: number;
}

export function queueContext(database: Database, options: QueueOptions | undefined): QueueContext {
  const context = storeContext(database, options, ["sourceKeyMemory"]);
  const { sourceKeyMemory = sourceKeyMemoryDefault } = options ?? {};
  return {
    ...context,
    memoryMs: durationMs(sourceKeyMemory, "sourceKeyMemory"),
  };
}

/** Decodes the payloads of a batch. @throws HoldfastError `CORRUPT_ROW` */
export function readBatch<B extends QueueBatch>(
  context: Pick<StoreContext, "database" | "decode">,
  batch: B,
): Omit<B, "items"> & { readonly items: readonly QueueItem<unknown>[] } {
  return {
    ...batch,
    items: batch.items.map((item) => readItem(context, item)),
  };
}

/** @throws HoldfastError `CORRUPT_ROW` */
export function readItem(
  { database, decode }: Pick<StoreContext, "database" | "decode">,
  item: QueueItem,
): QueueItem<unknown> {
  if (!isUnchanged(database, item.payload)) throw changedRow("holdfast_queue_item", item.id);
  try {
    return { ...item, payload: decode(item.payload.text) };
  } catch (cause) {
    if (isSealed(cause)) throw cause;
    throw new HoldfastError(
      "CORRUPT_ROW",
      `The payload of queue item ${item.id} is unreadable (see cause). ` +
        "If the payload codec and its keys are right, cancel the batch: it blocks the batches behind it.",
      { table: "holdfast_queue_item", key: item.id },
      { cause },
    );
  }
}

const boundaries: readonly Boundary[] = ["idle", "activeTurn"];

export function checkedBoundary(boundary: Boundary = "idle"): Boundary {
  return checkedChoice("boundary", boundary, boundaries);
}

const states = ["all", "pending"] as const;

export function checkedState(state: (typeof states)[number] = "all"): (typeof states)[number] {
  return checkedChoice("state", state, states);
}

function checkedChoice<T extends string>(option: string, given: T, choices: readonly T[]): T {
  if (choices.includes(given)) return given;
  throw new HoldfastError("OPTION_INVALID", `${option} must be one of ${choices.join(", ")}.`, {
    option,
  });
}

export function checkedBatchIds(ids: readonly string[]): readonly string[] {
  checkedCount("The number of batches", listed(ids).length, {
    min: 0,
    max: batchesPerClaimMax,
  });
  return ids.map((id) => checkedText("The id of a batch", id));
}

export function checkedClaim(ref: QueueClaimRef): QueueClaimRef {
  if (typeof ref !== "object" || ref === null) throw notAClaim();
  const { claim, batches } = draftOf("the claim", ref, ["claim", "batches"]);
  // The database refuses an unknown claim.
  if (!isStorable(claim) || claim.length > claimCharactersMax) throw notAClaim();
  return { claim, batches: checkedBatchIds(batches) };
}

const claimCharactersMax = 128;
const claimsMax = 256;

export function checkedClaims(claims: readonly QueueClaimRef[]): readonly QueueClaimRef[] {
  const range = { min: 0, max: claimsMax };
  checkedCount("The number of claims", listed(claims).length, range);
  return claims.map(checkedClaim);
}

function listed<T>(given: readonly T[]): readonly T[] {
  if (!Array.isArray(given)) throw notAClaim();
  return given as readonly T[];
}

function notAClaim(): HoldfastError {
  return new HoldfastError(
    "OPTION_INVALID",
    "Expected the ref of a claim as claimTurn, claimCommand and claimBatches return it: its claim and the ids of its batches. Pass that object unchanged.",
    { option: "claim" },
  );
}
