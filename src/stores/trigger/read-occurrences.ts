import { occurrenceNotFound } from "../../model/trigger-errors.ts";
import type { TriggerSource } from "../../model/trigger.ts";
import { integersOf } from "../../sql/dialect.ts";
import { row, rows, plainOperation } from "../../sql/operation.ts";
import type { Operation, Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { sift } from "../damage.ts";
import type { Damaged } from "../damage.ts";
import type { SubscriptionRef } from "./checks.ts";
import {
  deliveriesOf,
  deliveryOf,
  foundOccurrence,
  occurrenceColumns,
  occurrenceOf,
} from "./occurrence-row.ts";
import type {
  TriggerDelivery,
  DeliveryRow,
  Occurrence,
  OccurrenceRow,
} from "./occurrence-row.ts";
import { registrantKey } from "./read.ts";
import { subscriptionNotFound } from "../../model/trigger-errors.ts";

/** An occurrence with what it brought about. */
export interface StoredOccurrence {
  readonly occurrence: Occurrence;
  readonly deliveries: readonly TriggerDelivery[];
}

/** @throws HoldfastError `OCCURRENCE_NOT_FOUND`, `CORRUPT_ROW` */
export const readOneOccurrence: Operation<string, StoredOccurrence> =
  plainOperation("readOccurrence", {
    key: (key: string) => key,
    *one(key) {
      const found = yield* foundOccurrence(key);
      if (found === undefined) throw occurrenceNotFound(key);
      const deliveries = yield* deliveriesOf([found.key]);
      return {
        occurrence: occurrenceOf(found),
        deliveries: deliveries.map(deliveryOf),
      };
    },
  });

export interface ListOccurrences {
  /** Those of one source, of one subscription, or all. */
  readonly source: TriggerSource | undefined;
  readonly subscription: SubscriptionRef | undefined;
  /** The `next` of the page before. */
  readonly before: number;
  readonly limit: number;
}

export interface OccurrenceRows {
  readonly items: readonly StoredOccurrence[];
  readonly damaged: readonly Damaged[];
  /** Where to go on, when there are more. */
  readonly next: number | undefined;
}

/** So many are read at once. */
const occurrencesPerPart = 16;

/** A page ends when its payloads and deliveries, each counted as so much, come to this many characters. */
const charactersPerPage = 4 * 1024 * 1024;
const charactersPerDelivery = 4_096;

/**
 * A page of occurrences, the latest recorded first. It may have fewer than were
 * asked for: 1,000 of them with 64 deliveries each took a second to read.
 *
 * @throws HoldfastError `SUBSCRIPTION_NOT_FOUND`, `SESSION_NOT_FOUND`, `SESSION_DELETED`
 */
export const listOccurrences: Operation<ListOccurrences, OccurrenceRows> =
  plainOperation("listOccurrences", {
    key: (input: ListOccurrences) => input.source?.key ?? "",
    *one(input) {
      const items: StoredOccurrence[] = [];
      const damaged: Damaged[] = [];
      let next: number | undefined = input.before;
      let characters = 0;
      while (
        next !== undefined &&
        items.length < input.limit &&
        characters < charactersPerPage
      ) {
        const left = input.limit - items.length;
        const limit = Math.min(left, occurrencesPerPart);
        const part: OccurrenceRows = yield* partOf({
          ...input,
          before: next,
          limit,
        });
        items.push(...part.items);
        damaged.push(...part.damaged);
        for (const { occurrence, deliveries } of part.items)
          characters +=
            occurrence.payload.length +
            deliveries.length * charactersPerDelivery;
        ({ next } = part);
      }
      return { items, damaged, next };
    },
  });

function* partOf(input: ListOccurrences): Tx<OccurrenceRows> {
  const found = yield* foundPage(input);
  const page = found.slice(0, input.limit);
  const { items, damaged } = sift(
    "holdfast_trigger_delivery",
    yield* deliveriesOf(page.map(({ key }) => key)),
    ({ occurrence, name }) => `${occurrence}/${name}`,
    (each) => ({ occurrence: each.occurrence, delivery: deliveryOf(each) }),
  );
  const deliveries = new Map(
    page.map(({ key }) => [key, [] as TriggerDelivery[]]),
  );
  for (const { occurrence, delivery } of items)
    deliveries.get(occurrence)?.push(delivery);
  return {
    items: page.map((each) => ({
      occurrence: occurrenceOf(each),
      deliveries: deliveries.get(each.key) ?? [],
    })),
    damaged,
    next: found.length > input.limit ? page.at(-1)?.key : undefined,
  };
}

function* foundPage(input: ListOccurrences): Tx<readonly OccurrenceRow[]> {
  const { source, subscription, before, limit } = input;
  if (subscription !== undefined) {
    const keys = yield* deliveredTo(subscription, before, limit);
    if (keys.length === 0) return [];
    return yield* rows<OccurrenceRow>(sql`
      SELECT ${occurrenceColumns} FROM holdfast_trigger_occurrence
      WHERE key IN ${integersOf(keys)} ORDER BY key DESC`);
  }
  const which =
    source === undefined
      ? sql`key < ${before}`
      : sql`source_type = ${source.type} AND source_key = ${source.key} AND key < ${before}`;
  return yield* rows<OccurrenceRow>(sql`
    SELECT ${occurrenceColumns} FROM holdfast_trigger_occurrence
    WHERE ${which} ORDER BY key DESC LIMIT ${limit + 1}`);
}

/** Occurrences that were delivered to a subscription, deleted ones included. */
function* deliveredTo(
  { key, registrant }: SubscriptionRef,
  before: number,
  limit: number,
): Tx<readonly number[]> {
  const session = yield* registrantKey(registrant);
  const subscription = yield* row<{ readonly key: number }>(sql`
    SELECT key FROM holdfast_trigger_subscription WHERE session = ${session} AND name = ${key}`);
  if (subscription === undefined) throw subscriptionNotFound(key);
  const found = yield* rows<Pick<DeliveryRow, "occurrence">>(sql`
    SELECT occurrence FROM holdfast_trigger_delivery
    WHERE subscription = ${subscription.key} AND occurrence < ${before}
    ORDER BY occurrence DESC LIMIT ${limit + 1}`);
  return found.map(({ occurrence }) => occurrence);
}
