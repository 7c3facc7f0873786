import { HoldfastError } from "./errors.ts";
import { excerpt } from "./values/excerpt.ts";
import { isRecord, spokenKind } from "./values/spoken-kind.ts";

/**
 * The class of queued work. Turn work becomes part of a turn. A command is for the session itself
 * and is processed on its own.
 */
export type WorkClass = "turn" | "command";
/**
 * The point at which a batch may be claimed: between the steps of a running turn too, or only after
 * the turn's commit.
 */
export type Delivery = "earliestSafeBoundary" | "afterTurnCommit";
/**
 * The rule for claiming a batch together with others: always by itself, or with the batches that
 * follow.
 */
export type Slot = "exclusive" | "join";
/** The situation of a claim: inside a running turn, or with no turn running. */
export type Boundary = "activeTurn" | "idle";

/** The rules for when a batch is claimed, and with which others. */
export interface QueuePolicy {
  readonly class: WorkClass;
  readonly delivery: Delivery;
  readonly slot: Slot;
  /**
   * A key for joining: batches join only if their keys are equal. Two batches without a key have
   * equal keys.
   */
  readonly mergeKey: string | null;
}

/** One item of work. Kinds are the app's own names. */
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
 * Returns the class that all items of a batch share.
 *
 * @throws HoldfastError `BATCH_INVALID` when there are no items or too many, or when their classes
 * differ: such a batch could never be claimed.
 */
export function classOf(items: readonly QueueItemDraft[]): WorkClass {
  if (!Array.isArray(items))
    throw invalid(`has ${spokenKind(items)} instead of an array of items.`, {
      path: "items",
    });
  if (items.length > itemsPerBatchMax)
    throw invalid(
      `has ${items.length} items. A batch takes at most ${itemsPerBatchMax}: split it.`,
      {
        items: items.length,
      },
    );
  const wrong = items.findIndex((item) => !isRecord(item));
  if (wrong >= 0)
    throw invalid(`has ${spokenKind(items[wrong])} instead of an item (number ${wrong}).`, {
      path: `items[${wrong}]`,
      item: wrong,
    });
  const [first] = items as readonly QueueItemDraft[];
  if (first === undefined) throw invalid("has no items. Pass at least one.", { items: 0 });
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

/** @throws HoldfastError `BATCH_INVALID` for an unknown policy. */
export function checkedPolicy<P extends QueuePolicy>(policy: P): P {
  if (!deliveries.includes(policy.delivery))
    throw invalid(`has the delivery ${spoken(policy.delivery)}. Use ${deliveries.join(" or ")}.`);
  if (!slots.includes(policy.slot))
    throw invalid(`has the slot ${spoken(policy.slot)}. Use ${slots.join(" or ")}.`);
  return policy;
}

/** Checks that a stored policy is one that Holdfast writes. */
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

/**
 * True when a turn may start with the first batch in line at this boundary. A command blocks
 * everything behind it.
 */
export function mayStartWith(head: QueuePolicy, boundary: Boundary): boolean {
  if (head.class !== "turn") return false;
  return boundary === "idle" || head.delivery === "earliestSafeBoundary";
}

/** Returns the number of batches, from the first one on, that a turn claims together. */
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

/** Returns 1 when a command is first in line: a command is claimed by itself. */
export function commandPrefix(line: readonly QueuePolicy[]): 0 | 1 {
  return line[0]?.class === "command" ? 1 : 0;
}

function invalid(what: string, details: Readonly<Record<string, unknown>> = {}): HoldfastError {
  return new HoldfastError("BATCH_INVALID", `The batch ${what} Nothing was enqueued.`, details);
}

function spoken(given: unknown): string {
  return typeof given === "string" ? excerpt(given) : typeof given;
}
