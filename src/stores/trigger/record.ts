import type { Encoded, HashedText } from "../../model/values/encoded.ts";
import { HoldfastError } from "../../model/errors.ts";
import { checkedInstant, draftOf, givenInvalid } from "../../model/shape.ts";
import { isRecord } from "../../model/values/spoken-kind.ts";
import {
  occurrenceConflict,
  occurrenceRemoved,
  subscriptionInvalid,
} from "../../model/trigger/errors.ts";
import {
  occurrenceDifference,
  scheduledOccurrence,
  scheduledPrefix,
  scheduleSource,
  type TriggerSource,
} from "../../model/trigger/trigger.ts";
import type { WaitOptions } from "../../sql/database.ts";
import { lockShared } from "../../sql/dialect.ts";
import { row, rows, storeOperation, type Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { sift, type Damaged, type Sifted } from "../damage.ts";
import { onlyWait, type Call } from "../method.ts";
import type { DueInstant } from "../schedule/schedule-row.ts";
import type { SessionRef } from "../session-row.ts";
import { checkedSource } from "./content.ts";
import type { TriggerContext } from "./context.ts";
import { deliver, type Addressee } from "./deliver.ts";
import {
  checkedOccurrenceKey,
  decodedOccurrence,
  deliveriesOf,
  occurrenceColumns,
  occurrenceOf,
  readableDeliveries,
  type Occurrence,
  type OccurrenceRow,
  type TriggerDelivery,
} from "./occurrence-row.ts";
import {
  host,
  lockedIfLiving,
  shownSubscription,
  subscriptionColumns,
  subscriptionOf,
  subscriptionTable,
  type SubscriptionRow,
} from "./subscription-row.ts";

/** The caller's description of an event. */
export interface OccurrenceDraft {
  /**
   * Chosen by the caller and unique. Recording it twice records it once. Keys that begin with
   * `schedule:` belong to the scheduler.
   */
  readonly key: string;
  readonly source: TriggerSource | { readonly type: string; readonly value: unknown };
  readonly payload?: unknown;
  /** In milliseconds since 1970; defaults to now. */
  readonly occurredAt?: number;
}

/** An occurrence to record. */
interface RecordOccurrence {
  readonly key: string;
  readonly source: TriggerSource;
  /** Encoded during the call, since its caller may change the object later. */
  readonly payload: {
    readonly encoded: Encoded;
    readonly hash: string;
  };
  readonly occurredAt: number;
  readonly at: number;
}

/** @throws HoldfastError `OPTION_INVALID`, `SUBSCRIPTION_INVALID`, `NAME_INVALID`, `NOT_SERIALIZABLE`, `VALUE_TOO_LARGE` */
export function givenRecord(
  context: TriggerContext,
  draft: OccurrenceDraft,
  wait?: WaitOptions,
): Call<RecordOccurrence> {
  if (!isRecord(draft))
    throw givenInvalid("occurrence", "an object with a key and a source", draft);
  const { clock, codec } = context;
  const at = clock.now();
  const {
    key,
    source: sourceDraft,
    payload = null,
    occurredAt = at,
  } = draftOf<OccurrenceDraft>("the occurrence", draft, ["key", "source", "payload", "occurredAt"]);
  const source = checkedSource(context, sourceDraft, "occurrence");
  if (source.type === scheduleSource)
    throw subscriptionInvalid(
      "$.source.type",
      `is "${scheduleSource}": only the scheduler records occurrences of schedules.`,
      { of: "occurrence" },
    );
  const { stored, read } = codec.encodeOnce(payload);
  return {
    input: {
      key: checkedNewKey(key),
      source,
      payload: {
        encoded: stored as Encoded,
        hash: codec.hash("occurrence", 1, read),
      },
      occurredAt: checkedInstant("occurredAt", occurredAt),
      at,
    },
    wait: onlyWait(wait),
  };
}

/**
 * Validates the key of an occurrence that a caller records.
 * @throws HoldfastError `NAME_INVALID`
 */
function checkedNewKey(given: string): string {
  const key = checkedOccurrenceKey(given);
  if (!key.startsWith(scheduledPrefix)) return key;
  const what = "The key of an occurrence";
  throw new HoldfastError(
    "NAME_INVALID",
    `${what} must not begin with "${scheduledPrefix}": the scheduler uses that prefix for the instants of schedules. ` +
      "Begin it with the name of your source.",
    { what, prefix: scheduledPrefix },
  );
}

export interface RecordOccurrenceOutcome<Payload = unknown> {
  /** Replayed: it was recorded before, with these deliveries. */
  readonly kind: "recorded" | "replayed";
  readonly occurrence: Occurrence<Payload>;
  /** One for each subscription that was enabled at the time, in the order of registrant and key. */
  readonly deliveries: readonly TriggerDelivery[];
  /** Unreadable subscriptions, which were skipped. */
  readonly damaged: readonly Damaged[];
}

/**
 * Records an occurrence, and registers the process of each enabled subscription to its source, all
 * or nothing. Each key is recorded once.
 *
 * Locks the occurrence first, then the subscribed sessions by id, then the subscriptions. So none
 * of them is disabled or deleted in between.
 *
 * @throws HoldfastError `OCCURRENCE_CONFLICT` naming the part that differs, `TRANSACTION_CONFLICT`
 *   when it is removed during the call
 */
export const recordOccurrence = storeOperation("recordOccurrence", {
  key: (input) => input.key,
  *one(context: TriggerContext, input: RecordOccurrence): Tx<RecordOccurrenceOutcome<HashedText>> {
    const inserted = yield* insertOccurrence(input);
    if (inserted === undefined) return yield* recordedBefore(input);
    const { items, damaged } = yield* addressees(context, input.source);
    const occurrence = occurrenceOf(inserted);
    const deliveries: TriggerDelivery[] = [];
    if (items.length > 0) {
      const recorded = {
        row: inserted.key,
        payloadHash: input.payload.hash,
        occurrence: decodedOccurrence(context, occurrence),
      };
      for (const each of items) deliveries.push(yield* deliver(context, recorded, each, input.at));
    }
    return { kind: "recorded", occurrence, deliveries, damaged };
  },
});

/** @throws HoldfastError `CORRUPT_ROW` for an unreadable occurrence that was recorded before. */
export function shownRecorded(
  context: TriggerContext,
  outcome: RecordOccurrenceOutcome<HashedText>,
): RecordOccurrenceOutcome {
  const occurrence = decodedOccurrence(context, outcome.occurrence);
  return { ...outcome, occurrence };
}

function* insertOccurrence(input: RecordOccurrence): Tx<OccurrenceRow | undefined> {
  const { key, source, payload, occurredAt, at } = input;
  return yield* row<OccurrenceRow>(sql`
    INSERT INTO holdfast_trigger_occurrence
      (id, source_type, source_key, payload_hash, payload, occurred_at, recorded_at)
    VALUES (${key}, ${source.type}, ${source.key}, ${payload.hash}, ${payload.encoded}, ${occurredAt}, ${at})
    ON CONFLICT (id) DO NOTHING
    RETURNING ${occurrenceColumns}`);
}

function* recordedBefore(input: RecordOccurrence): Tx<RecordOccurrenceOutcome<HashedText>> {
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
  const { items, damaged } = readableDeliveries(yield* deliveriesOf([found.key]));
  const deliveries = items.map(({ delivery }) => delivery);
  return { kind: "replayed", occurrence, deliveries, damaged };
}

/**
 * The enabled subscriptions to a source whose sessions are live. None of them can change before the
 * transaction ends.
 */
function* addressees(context: TriggerContext, source: TriggerSource): Tx<Sifted<Addressee>> {
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
    (each) => ({
      row: each.key,
      subscription: shownSubscription(context, subscriptionOf(each)),
    }),
  );
}

/** The keys of the existing sessions that have subscribed, locked in the order of their ids. */
function* lockedRegistrants(source: TriggerSource): Tx<ReadonlySet<number>> {
  const found = yield* rows<Pick<SubscriptionRow, "session" | "session_id" | "generation">>(sql`
    SELECT DISTINCT session, session_id, generation FROM holdfast_trigger_subscription
    WHERE source_type = ${source.type} AND source_key = ${source.key} AND is_enabled = 1
    ORDER BY session_id`);
  const living = new Set([host.key]);
  for (const { session_id: id, generation } of found) {
    // A row without them is reported as damaged when it is read.
    if (id === null || generation === null) continue;
    const ref: SessionRef = { id, generation };
    const key = yield* lockedIfLiving(ref);
    if (key !== undefined) living.add(key);
  }
  return living;
}

/** The input of a schedule's process: the instant, and the instants before it that were skipped. */
export interface SchedulePayload {
  readonly instant: number;
  readonly skipped: { readonly from: number; readonly before: number } | null;
}

/**
 * Records that the schedule of a subscription has reached an instant. The instant is part of the
 * key, so it is recorded once. Nothing is recorded for a deleted subscription whose schedule is
 * still being removed.
 */
export function* fireTrigger(
  context: TriggerContext,
  due: DueInstant,
): Tx<RecordOccurrenceOutcome<HashedText> | undefined> {
  const listens = yield* row(sql`
    SELECT key FROM holdfast_trigger_subscription
    WHERE source_type = ${scheduleSource} AND source_key = ${due.name} AND is_enabled = 1 LIMIT 1`);
  if (listens === undefined) return undefined;
  return yield* recordOccurrence(context)(occurrenceAt(context, due));
}

function occurrenceAt(
  context: TriggerContext,
  { name, instant, at, skipped }: DueInstant,
): RecordOccurrence {
  const value: SchedulePayload = { instant, skipped: skipped ?? null };
  return {
    key: scheduledOccurrence(name, instant),
    source: { type: scheduleSource, key: name },
    payload: {
      encoded: context.encode(value),
      // One instant is one occurrence, independent of skipped instants before it.
      hash: context.hash("occurrence", 1, { instant }),
    },
    occurredAt: instant,
    at,
  };
}
