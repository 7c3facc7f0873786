import type { Encoded } from "../../model/encoded.ts";
import {
  occurrenceConflict,
  occurrenceRemoved,
} from "../../model/trigger-errors.ts";
import { occurrenceDifference } from "../../model/trigger.ts";
import type { TriggerSource } from "../../model/trigger.ts";
import { lockShared } from "../../sql/dialect.ts";
import { row, rows, plainOperation } from "../../sql/operation.ts";
import type { Operation, Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { sift } from "../damage.ts";
import type { Damaged, Sifted } from "../damage.ts";
import type { ProcessCodec } from "../process/context.ts";
import type { SessionRef } from "../session/session-row.ts";
import { deliver } from "./deliver.ts";
import type { Addressee } from "./deliver.ts";
import {
  deliveriesOf,
  deliveryOf,
  occurrenceColumns,
  occurrenceOf,
  readOccurrence,
} from "./occurrence-row.ts";
import type {
  TriggerDelivery,
  Occurrence,
  OccurrenceRow,
} from "./occurrence-row.ts";
import {
  contentOf,
  host,
  lockedIfLiving,
  subscriptionColumns,
  subscriptionOf,
  subscriptionTable,
} from "./subscription-row.ts";
import type { SubscriptionRow } from "./subscription-row.ts";

/** An occurrence to be recorded; `recording` of `triggers` makes one of what a caller says. */
export interface RecordOccurrence {
  readonly key: string;
  readonly source: TriggerSource;
  /** Encoded when the call is made: its caller may go on with the object. */
  readonly payload: {
    readonly encoded: Encoded;
    readonly hash: string;
  };
  readonly occurredAt: number;
  readonly at: number;
  /** For values that are made inside the transaction. */
  readonly codec: ProcessCodec;
}

export interface RecordOccurrenceOutcome<Payload = Encoded> {
  /** Replayed: it was recorded before, with these deliveries. */
  readonly kind: "recorded" | "replayed";
  readonly occurrence: Occurrence<Payload>;
  /** One for each subscription that was enabled then, in the order of registrant and key. */
  readonly deliveries: readonly TriggerDelivery[];
  /** Subscriptions that could not be read, and were passed over. */
  readonly damaged: readonly Damaged[];
}

/**
 * Records that something happened, and registers the process of each enabled
 * subscription to its source: all of it, or nothing. Once for each key.
 *
 * Locks the occurrence, then the sessions that have subscribed, by id, then
 * the subscriptions, so that none of them is disabled or deleted meanwhile.
 *
 * @throws HoldfastError `OCCURRENCE_CONFLICT` naming the part that differs,
 *   `TRANSACTION_CONFLICT` when it is removed at this very moment
 */
export const recordOccurrence: Operation<
  RecordOccurrence,
  RecordOccurrenceOutcome
> = plainOperation("recordOccurrence", {
  key: (input: RecordOccurrence) => input.key,
  *one(input) {
    const inserted = yield* insertOccurrence(input);
    if (inserted === undefined) return yield* recordedBefore(input);
    const { items, damaged } = yield* addressees(input);
    const occurrence = occurrenceOf(inserted);
    const deliveries: TriggerDelivery[] = [];
    if (items.length > 0) {
      const { codec, at } = input;
      const recorded = {
        row: inserted.key,
        payloadHash: input.payload.hash,
        occurrence: readOccurrence(codec, occurrence),
      };
      for (const each of items)
        deliveries.push(yield* deliver(codec, recorded, each, at));
    }
    return { kind: "recorded", occurrence, deliveries, damaged };
  },
});

function* insertOccurrence(
  input: RecordOccurrence,
): Tx<OccurrenceRow | undefined> {
  const { key, source, payload, occurredAt, at } = input;
  return yield* row<OccurrenceRow>(sql`
    INSERT INTO holdfast_trigger_occurrence
      (id, source_type, source_key, payload_hash, payload, occurred_at, recorded_at)
    VALUES (${key}, ${source.type}, ${source.key}, ${payload.hash}, ${payload.encoded}, ${occurredAt}, ${at})
    ON CONFLICT (id) DO NOTHING
    RETURNING ${occurrenceColumns}`);
}

function* recordedBefore(input: RecordOccurrence): Tx<RecordOccurrenceOutcome> {
  // Locked, so that it is not removed before its deliveries are read.
  const found = yield* row<OccurrenceRow>(sql`
    SELECT ${occurrenceColumns} FROM holdfast_trigger_occurrence WHERE id = ${input.key} ${lockShared}`);
  if (found === undefined) throw occurrenceRemoved(input.key);
  const occurrence = occurrenceOf(found);
  const part = occurrenceDifference(
    { source: occurrence.source, payloadHash: found.payload_hash },
    { source: input.source, payloadHash: input.payload.hash },
  );
  if (part !== undefined) throw occurrenceConflict(input.key, part);
  const { items: deliveries, damaged } = yield* deliveriesWith(found.key);
  return { kind: "replayed", occurrence, deliveries, damaged };
}

function* deliveriesWith(occurrence: number): Tx<Sifted<TriggerDelivery>> {
  return sift(
    "holdfast_trigger_delivery",
    yield* deliveriesOf([occurrence]),
    ({ name }) => `${occurrence}/${name}`,
    deliveryOf,
  );
}

/** The enabled subscriptions to a source whose sessions live, none of which can change before the end. */
function* addressees({
  source,
  codec,
}: RecordOccurrence): Tx<Sifted<Addressee>> {
  const living = yield* lockedRegistrants(source);
  const found = yield* rows<SubscriptionRow>(sql`
    SELECT ${subscriptionColumns} FROM holdfast_trigger_subscription
    WHERE source_type = ${source.type} AND source_key = ${source.key} AND is_enabled = 1
    ORDER BY session, name ${lockShared}`);
  const listening = found.filter(
    ({ session, session_id: id }) => living.has(session) || id === null,
  );
  return sift(
    subscriptionTable,
    listening,
    ({ key }) => String(key),
    (each) => addresseeOf(codec, each),
  );
}

function addresseeOf(codec: ProcessCodec, found: SubscriptionRow): Addressee {
  const subscription = subscriptionOf(found);
  const content = contentOf(codec, found.key, subscription.content);
  return { row: found.key, subscription: { ...subscription, content } };
}

/** The keys of those who have subscribed and still exist, locked in the order of their ids. */
function* lockedRegistrants(source: TriggerSource): Tx<ReadonlySet<number>> {
  const found = yield* rows<
    Pick<SubscriptionRow, "session" | "session_id" | "generation">
  >(sql`
    SELECT DISTINCT session, session_id, generation FROM holdfast_trigger_subscription
    WHERE source_type = ${source.type} AND source_key = ${source.key} AND is_enabled = 1
    ORDER BY session_id`);
  const living = new Set([host.key]);
  for (const { session_id: id, generation } of found) {
    // A row that lacks them is named as damaged when it is read.
    if (id === null || generation === null) continue;
    const ref: SessionRef = { id, generation };
    const key = yield* lockedIfLiving(ref);
    if (key !== undefined) living.add(key);
  }
  return living;
}
