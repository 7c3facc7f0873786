import { corruptRow } from "../../model/corrupt-row.ts";
import { isSealed } from "../../model/values/payload-mark.ts";
import type { Encoded, HashedText } from "../../model/values/encoded.ts";
import type { SessionId } from "../../model/ids/session-id.ts";
import { checkedText } from "../../model/shape.ts";
import {
  scheduleSource,
  type Registrant,
  type TriggerSource,
} from "../../model/trigger/trigger.ts";
import { integersOf } from "../../sql/dialect.ts";
import { row, rows, type Tx } from "../../sql/operation.ts";
import { sql, type Statement } from "../../sql/statement.ts";
import type { StoreContext } from "../context.ts";
import { changedRow, sift, type Sifted } from "../damage.ts";
import { registrantOf } from "./subscription-row.ts";

export interface OccurrenceRow {
  readonly key: number;
  readonly id: string;
  readonly source_type: string;
  readonly source_key: string;
  readonly payload_hash: string;
  readonly payload: Encoded;
  readonly occurred_at: number;
  readonly recorded_at: number;
}

export const occurrenceColumns: Statement = sql`
  key, id, source_type, source_key, payload_hash, payload, occurred_at, recorded_at`;

export const occurrenceTable = "holdfast_trigger_occurrence";

/** A recorded event. */
export interface Occurrence<Payload = unknown> {
  readonly key: string;
  readonly source: TriggerSource;
  readonly payload: Payload;
  readonly occurredAt: number;
  readonly recordedAt: number;
}

export function occurrenceOf(found: OccurrenceRow): Occurrence<HashedText> {
  return {
    key: found.id,
    source: { type: found.source_type, key: found.source_key },
    payload: { text: found.payload, hash: found.payload_hash },
    occurredAt: found.occurred_at,
    recordedAt: found.recorded_at,
  };
}

/** An occurrence with its payload decoded. @throws HoldfastError `CORRUPT_ROW` */
export function decodedOccurrence(
  { codec }: Pick<StoreContext, "codec">,
  occurrence: Occurrence<HashedText>,
): Occurrence {
  const { text, hash } = occurrence.payload;
  let payload: unknown;
  try {
    payload = codec.decode(text);
  } catch (cause) {
    if (isSealed(cause)) throw cause;
    throw corruptRow(
      occurrenceTable,
      occurrence.key,
      "has a payload that the codec cannot read (if its keys are right)",
      { cause },
    );
  }
  const hashed = hashedPayload(occurrence.source, payload);
  if (!codec.agrees("occurrence", 1, hashed, hash))
    throw changedRow(occurrenceTable, occurrence.key);
  return { ...occurrence, payload };
}

/**
 * The hashed part of a payload. For a schedule it is only the instant, which identifies the
 * occurrence.
 */
export function hashedPayload({ type }: Pick<TriggerSource, "type">, payload: unknown): unknown {
  if (type !== scheduleSource) return payload;
  const { instant } = Object(payload) as { readonly instant?: unknown };
  return { instant };
}

const keyCharactersMax = 512;

/** @throws HoldfastError `NAME_INVALID` */
export function checkedOccurrenceKey(key: string): string {
  return checkedText("The key of an occurrence", key, keyCharactersMax);
}

export function* foundOccurrence(id: string): Tx<OccurrenceRow | undefined> {
  return yield* row<OccurrenceRow>(sql`
    SELECT ${occurrenceColumns} FROM holdfast_trigger_occurrence WHERE id = ${id}`);
}

/** The effects of an occurrence on one subscription. */
export interface TriggerDelivery {
  readonly subscription: {
    readonly key: string;
    readonly registrant: Registrant | null;
    /** The revision at the time of the delivery. */
    readonly revision: number;
  };
  /** The registered process; null for a refusal. */
  readonly process: string | null;
  /** The reason of a refusal; null when a process was started. */
  readonly refusal: {
    readonly code: string;
    /** The place at which the payload broke a rule, if it did. */
    readonly path?: string;
    readonly rule?: string;
  } | null;
}

export type DeliveryRefusal = NonNullable<TriggerDelivery["refusal"]>;

export interface DeliveryRow {
  readonly occurrence: number;
  readonly revision: number;
  readonly process: string | null;
  readonly refusal: string | null;
  readonly session: number;
  readonly session_id: SessionId | null;
  readonly generation: number | null;
  readonly name: string;
}

/** @throws HoldfastError `CORRUPT_ROW` */
export function deliveryOf(found: DeliveryRow): TriggerDelivery {
  return {
    subscription: {
      key: found.name,
      registrant: registrantOf(found),
      revision: found.revision,
    },
    process: found.process,
    refusal: found.refusal === null ? null : refusalOf(found, found.refusal),
  };
}

function refusalOf(found: DeliveryRow, text: string): DeliveryRefusal {
  try {
    return JSON.parse(text) as DeliveryRefusal;
  } catch (cause) {
    throw corruptRow(
      "holdfast_trigger_delivery",
      found.occurrence,
      "has a refusal that is not JSON",
      { cause },
    );
  }
}

/**
 * The deliveries of occurrences; those of one occurrence are in the order of registrant and key.
 */
export function* deliveriesOf(occurrences: readonly number[]): Tx<readonly DeliveryRow[]> {
  if (occurrences.length === 0) return [];
  return yield* rows<DeliveryRow>(sql`
    SELECT d.occurrence, d.revision, d.process, d.refusal, s.session, s.session_id, s.generation, s.name
    FROM holdfast_trigger_delivery d JOIN holdfast_trigger_subscription s ON s.key = d.subscription
    WHERE d.occurrence IN ${integersOf(occurrences)} ORDER BY d.occurrence, s.session, s.name`);
}

/** Decodes the deliveries of some rows, and names the unreadable ones. */
export function readableDeliveries(
  found: readonly DeliveryRow[],
): Sifted<{ readonly occurrence: number; readonly delivery: TriggerDelivery }> {
  return sift(
    "holdfast_trigger_delivery",
    found,
    ({ occurrence, name }) => `${occurrence}/${name}`,
    (each) => ({ occurrence: each.occurrence, delivery: deliveryOf(each) }),
  );
}
