import { corruptRow } from "../../model/corrupt-row.ts";
import type { HashedText } from "../../model/values/encoded.ts";
import { occurrenceNotFound, subscriptionNotFound } from "../../model/trigger/errors.ts";
import { processPrefix, type TriggerSource } from "../../model/trigger/trigger.ts";
import type { WaitOptions } from "../../sql/database.ts";
import { lockRow, textsOf } from "../../sql/dialect.ts";
import { row, rows, storeOperation, type Tx } from "../../sql/operation.ts";
import { sql, type Statement } from "../../sql/statement.ts";
import type { Damaged } from "../damage.ts";
import {
  list,
  pageOf,
  slicedByBytes,
  type List,
  type PageOptions,
  type Place,
  type Slice,
  type SliceBounds,
} from "../list.ts";
import { onlyWait, type Call } from "../method.ts";
import { readRunning } from "../process/running-row.ts";
import { checkedSource } from "./content.ts";
import type { TriggerContext } from "./context.ts";
import {
  checkedOccurrenceKey,
  decodedOccurrence,
  deliveriesOf,
  deliveryOf,
  foundOccurrence,
  occurrenceColumns,
  occurrenceOf,
  occurrenceTable,
  readableDeliveries,
  type DeliveryRow,
  type Occurrence,
  type OccurrenceRow,
  type TriggerDelivery,
} from "./occurrence-row.ts";
import type { OccurrenceDraft } from "./record.ts";
import {
  registrantKey,
  subscriptionNamed,
  type SubscriptionName,
  type SubscriptionRef,
} from "./subscription-row.ts";

/** An occurrence with its deliveries. */
export interface OccurrenceView extends Occurrence {
  readonly deliveries: readonly TriggerDelivery[];
}

interface StoredOccurrence {
  readonly occurrence: Occurrence<HashedText>;
  readonly deliveries: readonly TriggerDelivery[];
}

export function givenReadOccurrence(
  _: TriggerContext,
  key: string,
  wait?: WaitOptions,
): Call<string> {
  return { input: checkedOccurrenceKey(key), wait: onlyWait(wait) };
}

/** Locks the occurrence that a read is about. The read reports a missing one. */
export function* lockReadOccurrence(key: string): Tx<void> {
  yield* row(sql`SELECT key FROM holdfast_trigger_occurrence WHERE id = ${key} ${lockRow}`);
}

/** @throws HoldfastError `OCCURRENCE_NOT_FOUND`, `CORRUPT_ROW` */
export const readOccurrence = storeOperation("readOccurrence", {
  key: (key) => key,
  *one(_: TriggerContext, key: string): Tx<StoredOccurrence> {
    const found = yield* foundOccurrence(key);
    if (found === undefined) throw occurrenceNotFound(key);
    const deliveries = yield* deliveriesOf([found.key]);
    return {
      occurrence: occurrenceOf(found),
      deliveries: deliveries.map(deliveryOf),
    };
  },
});

/** @throws HoldfastError `CORRUPT_ROW` */
export function shownOccurrence(
  context: TriggerContext,
  { occurrence, deliveries }: StoredOccurrence,
): OccurrenceView {
  return { ...decodedOccurrence(context, occurrence), deliveries };
}

export interface ListOccurrencesOptions extends PageOptions {
  readonly source?: OccurrenceDraft["source"];
  /** Only occurrences delivered to this subscription, even if it is deleted. */
  readonly subscription?: SubscriptionName;
}

interface OccurrenceFilter {
  /** Occurrences of one source, of one subscription, or all. */
  readonly source: TriggerSource | undefined;
  readonly subscription: SubscriptionRef | undefined;
}

/**
 * Occurrences, most recently recorded first.
 * @throws HoldfastError `SUBSCRIPTION_NOT_FOUND`, `SESSION_NOT_FOUND`, `SESSION_DELETED`
 */
export const occurrenceList: List<
  TriggerContext,
  [options?: ListOccurrencesOptions],
  OccurrenceView
> = list("listOccurrences", {
  table: occurrenceTable,
  given(context: TriggerContext, options?: ListOccurrencesOptions) {
    const {
      filter: { source, subscription },
      page,
    } = pageOf(options, ["source", "subscription"]);
    return {
      filter: {
        source: source === undefined ? undefined : checkedSource(context, source),
        subscription: subscription === undefined ? undefined : subscriptionNamed(subscription),
      },
      page,
    };
  },
  slice: occurrenceSlice,
  keyOf: ({ occurrence }: StoredOccurrence) => occurrence.key,
  itemOf: shownOccurrence,
});

/** The bytes that a delivery adds to a page: reading 64,000 of them took a second. */
const deliveryBytes = 1_000;

function* occurrenceSlice(
  _: TriggerContext,
  filter: OccurrenceFilter,
  bounds: SliceBounds,
): Tx<Slice<StoredOccurrence>> {
  const { subscription } = filter;
  const next =
    subscription === undefined
      ? ofSource(filter.source)
      : deliveredTo(yield* subscriptionKey(subscription));
  const slice = yield* slicedByBytes(
    bounds,
    ({ place }: PlacedRow) => [place],
    function* (after, count) {
      const found = yield* rows<{ readonly bytes: number }>(sql`
        SELECT COALESCE(octet_length(payload), 0) + ${deliveryBytes} *
          (SELECT COUNT(*) FROM holdfast_trigger_delivery d WHERE d.occurrence = o.key) AS bytes
        ${next.from(beforeOf(after), count)}`);
      return found.map(({ bytes }) => bytes);
    },
    function* (after, count) {
      return yield* rows<PlacedRow>(sql`
        SELECT ${next.place} AS place, ${occurrenceColumns} ${next.from(beforeOf(after), count)}`);
    },
  );
  const shown = yield* withDeliveries(slice.rows.filter(isThere));
  const lost = slice.rows
    .filter((each) => !isThere(each))
    .map(({ place }) => ({
      table: "holdfast_trigger_delivery",
      key: `${place}/${subscription?.key}`,
    }));
  return {
    rows: shown.rows,
    damaged: [...lost, ...shown.damaged],
    next: slice.next,
  };
}

/** An occurrence with its key. The row of a delivered occurrence may be lost. */
type PlacedRow = { readonly place: number } & (OccurrenceRow | { readonly id: null });

function isThere(found: PlacedRow): found is PlacedRow & OccurrenceRow {
  return found.id !== null;
}

function beforeOf(after: Place | undefined): number {
  return Number(after?.[0] ?? Number.MAX_SAFE_INTEGER);
}

/** The next occurrences as parts of a SELECT, and their order. */
interface NextOccurrences {
  readonly place: Statement;
  readonly from: (before: number, count: number) => Statement;
}

function ofSource(source: TriggerSource | undefined): NextOccurrences {
  const which =
    source === undefined
      ? sql``
      : sql`source_type = ${source.type} AND source_key = ${source.key} AND`;
  return {
    place: sql`o.key`,
    from: (before, count) => sql`
      FROM holdfast_trigger_occurrence o
      WHERE ${which} key < ${before} ORDER BY key DESC LIMIT ${count}`,
  };
}

function deliveredTo(subscription: number): NextOccurrences {
  return {
    place: sql`x.occurrence`,
    from: (before, count) => sql`
      FROM holdfast_trigger_delivery x LEFT JOIN holdfast_trigger_occurrence o ON o.key = x.occurrence
      WHERE x.subscription = ${subscription} AND x.occurrence < ${before}
      ORDER BY x.occurrence DESC LIMIT ${count}`,
  };
}

/** The key of a subscription, deleted ones included. */
function* subscriptionKey({ key, registrant }: SubscriptionRef): Tx<number> {
  const session = yield* registrantKey(registrant);
  const found = yield* row<{ readonly key: number }>(sql`
    SELECT key FROM holdfast_trigger_subscription WHERE session = ${session} AND name = ${key}`);
  if (found === undefined) throw subscriptionNotFound(key);
  return found.key;
}

function* withDeliveries(found: readonly OccurrenceRow[]): Tx<{
  readonly rows: readonly StoredOccurrence[];
  readonly damaged: readonly Damaged[];
}> {
  const { items, damaged } = readableDeliveries(yield* deliveriesOf(found.map(({ key }) => key)));
  const deliveries = new Map(found.map(({ key }) => [key, [] as TriggerDelivery[]]));
  for (const { occurrence, delivery } of items) deliveries.get(occurrence)?.push(delivery);
  return {
    rows: found.map((each) => ({
      occurrence: occurrenceOf(each),
      deliveries: deliveries.get(each.key) ?? [],
    })),
    damaged,
  };
}

/** A process that an occurrence has registered and that no worker has started. */
export interface UnstartedDelivery extends TriggerDelivery {
  readonly process: string;
  /** The key of the occurrence. */
  readonly occurrence: string;
  readonly source: TriggerSource;
}

/**
 * Deliveries whose process no worker has started or holds: the part of the recovery worklist that
 * triggers registered.
 */
export const unstartedList: List<TriggerContext, [options?: PageOptions], UnstartedDelivery> = list(
  "listUnstartedDeliveries",
  {
    table: "holdfast_trigger_delivery",
    given: (_: TriggerContext, options?: PageOptions) => ({
      filter: {},
      page: pageOf(options, []).page,
    }),
    *slice({ clock }, _, { after, limit }) {
      const page = yield* readRunning({
        // The ids of these processes are consecutive.
        after: String(after?.[0] ?? processPrefix),
        isStarted: false,
        limit,
        now: clock.now(),
      });
      const ids = page.items
        .filter(({ holder }) => holder === undefined)
        .map(({ process }): string => process.id)
        .filter(isTriggered);
      const { next } = page;
      return {
        rows: yield* deliveriesFor(ids),
        damaged: page.damaged.filter(({ key }) => isTriggered(key)),
        next: next !== undefined && isTriggered(next) ? [next] : undefined,
      };
    },
    keyOf: ({ process }: StartedRow) => process,
    itemOf: (_, found) => unstartedOf(found),
  },
);

function isTriggered(id: string): boolean {
  return id.startsWith(processPrefix);
}

interface StartedRow extends DeliveryRow {
  readonly process: string;
  /** Null when the row of the occurrence is lost. */
  readonly id: string | null;
  readonly source_type: string;
  readonly source_key: string;
}

/** @throws HoldfastError `CORRUPT_ROW` */
function unstartedOf(found: StartedRow): UnstartedDelivery {
  const { process, id, source_type: type, source_key: key } = found;
  if (id === null) throw corruptRow("holdfast_trigger_delivery", process, "lacks its occurrence");
  const source = { type, key };
  return { ...deliveryOf(found), process, occurrence: id, source };
}

function* deliveriesFor(ids: readonly string[]): Tx<readonly StartedRow[]> {
  if (ids.length === 0) return [];
  return yield* rows<StartedRow>(sql`
    SELECT d.occurrence, d.revision, d.process, d.refusal, s.session, s.session_id, s.generation, s.name,
      o.id, o.source_type, o.source_key
    FROM holdfast_trigger_delivery d
      JOIN holdfast_trigger_subscription s ON s.key = d.subscription
      LEFT JOIN holdfast_trigger_occurrence o ON o.key = d.occurrence
    WHERE d.process IN ${textsOf(ids)} ORDER BY d.process`);
}
