import { HoldfastError } from "./errors.ts";
import { excerpt } from "./values/excerpt.ts";
import { isRecord, spokenKind } from "./values/spoken-kind.ts";

/** Turn work becomes part of a turn; a command is for the session itself, and is dealt with alone. */
export type WorkClass = "turn" | "command";
/** When a batch may be taken: also between the steps of a running turn, or only after its commit. */
export type Delivery = "earliestSafeBoundary" | "afterTurnCommit";
/** Whether a batch is taken alone, or may be taken together with those that follow. */
export type Slot = "exclusive" | "join";
/** Where work is asked for: inside a running turn, or with none running. */
export type Boundary = "activeTurn" | "idle";

/** What decides when and with which others a batch is taken. */
export interface QueuePolicy {
  readonly class: WorkClass;
  readonly delivery: Delivery;
  readonly slot: Slot;
  /** Batches join only those with an equal key; none equals none. */
  readonly mergeKey: string | null;
}

/** One thing to work on. Kinds are the host's own names. */
export interface QueueItemDraft<P = unknown> {
  readonly kind: string;
  /** Defaults to `turn`. */
  readonly class?: WorkClass;
  readonly payload: P;
}

const itemsPerBatchMax = 256;
export const batchesPerClaimMax = 256;

const classes: readonly string[] = ["turn", "command"] satisfies WorkClass[];
const deliveries: readonly string[] = [
  "earliestSafeBoundary",
  "afterTurnCommit",
] satisfies Delivery[];
const slots: readonly string[] = ["exclusive", "join"] satisfies Slot[];

/**
 * The class that all items of a batch have.
 *
 * @throws HoldfastError `BATCH_INVALID` when there are none or too many, or
 *   when they differ: such a batch could never be claimed.
 */
export function classOf(items: readonly QueueItemDraft[]): WorkClass {
  if (!Array.isArray(items))
    throw invalid(`has ${spokenKind(items)} instead of a list of items.`, {
      path: "items",
    });
  const wrong = items.findIndex((item) => !isRecord(item));
  if (wrong >= 0)
    throw invalid(`has ${spokenKind(items[wrong])} instead of an item (number ${wrong}).`, {
      path: `items[${wrong}]`,
      item: wrong,
    });
  const [first] = items as readonly QueueItemDraft[];
  if (first === undefined) throw invalid("has no items. Give it at least one.", { items: 0 });
  if (items.length > itemsPerBatchMax)
    throw invalid(`has ${items.length} items. Split it: at most ${itemsPerBatchMax} go together.`, {
      items: items.length,
    });
  const wanted = first.class ?? "turn";
  for (const [index, item] of items.entries()) {
    const { class: own = "turn" } = item as QueueItemDraft;
    if (!classes.includes(own))
      throw invalid(
        `has an item (number ${index}) of class ${spoken(own)}. Classes are ${classes.join(" and ")}.`,
        { item: index },
      );
    if (own !== wanted)
      throw invalid(
        `mixes ${wanted} work with ${own} work (item ${index}). Enqueue commands in batches of their own.`,
        { item: index },
      );
  }
  return wanted;
}

/** @throws HoldfastError `BATCH_INVALID` for a policy that does not exist. */
export function checkedPolicy<P extends QueuePolicy>(policy: P): P {
  if (!deliveries.includes(policy.delivery))
    throw invalid(`has the delivery ${spoken(policy.delivery)}. Use ${deliveries.join(" or ")}.`);
  if (!slots.includes(policy.slot))
    throw invalid(`has the slot ${spoken(policy.slot)}. Use ${slots.join(" or ")}.`);
  return policy;
}

/** Whether stored policies are ones that were ever written. */
export function isPolicy(policy: {
  readonly class: string;
  readonly delivery: string;
  readonly slot: string;
}): boolean {
  return (
    classes.includes(policy.class) &&
    deliveries.includes(policy.delivery) &&
    slots.includes(policy.slot)
  );
}

/** Whether the first batch in line may be taken for a turn at a boundary. A command blocks what is behind it. */
export function mayStartWith(head: QueuePolicy, boundary: Boundary): boolean {
  if (head.class !== "turn") return false;
  return boundary === "idle" || head.delivery === "earliestSafeBoundary";
}

/** How many batches from the first one on are taken together for a turn. */
export function turnPrefix(line: readonly QueuePolicy[], boundary: Boundary, max: number): number {
  const [head] = line;
  if (head === undefined || max < 1 || !mayStartWith(head, boundary)) return 0;
  if (head.slot === "exclusive") return 1;
  const end = line.findIndex((batch) => !joins(head, batch));
  return Math.min(end < 0 ? line.length : end, max);
}

function joins(head: QueuePolicy, next: QueuePolicy): boolean {
  return (
    next.class === head.class &&
    next.slot === "join" &&
    next.delivery === head.delivery &&
    next.mergeKey === head.mergeKey
  );
}

/** A command is taken alone, and only as the first in line. */
export function commandPrefix(line: readonly QueuePolicy[]): 0 | 1 {
  return line[0]?.class === "command" ? 1 : 0;
}

function invalid(what: string, details: Readonly<Record<string, unknown>> = {}): HoldfastError {
  return new HoldfastError("BATCH_INVALID", `The batch ${what} Nothing was enqueued.`, details);
}

function spoken(given: unknown): string {
  return typeof given === "string" ? excerpt(given) : typeof given;
}
