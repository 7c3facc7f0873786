import { durationMs, type Duration } from "../../model/time/durations.ts";
import { HoldfastError } from "../../model/errors.ts";
import { batchesPerClaimMax, type Boundary } from "../../model/queue.ts";
import { checkedCount, checkedText, draftOf, isStorable } from "../../model/shape.ts";
import type { Database } from "../../sql/database.ts";
import { storeContext, type StoreContext, type StoreOptions } from "../context.ts";
import type { QueueBatch, QueueItem } from "./batch-row.ts";
import type { QueueClaimRef } from "./parts.ts";

export interface QueueOptions extends StoreOptions {
  /** How long the source key of a batch that has left the queue is remembered; defaults to 30 days. */
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
  throw new HoldfastError(
    "OPTION_INVALID",
    `${option} is one of ${choices.join(", ")}; got something else.`,
    { option },
  );
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
  // An unknown claim is for the database to refuse.
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
    "Expected the ref of a claim as claimTurn, claimCommand and claimBatches return it: its claim and the ids of its batches. Pass that object as it is.",
    { option: "claim" },
  );
}
