import { checkedFilterText, givenFlag } from "../../model/shape.ts";
import { row, rows, storeOperation, type Tx } from "../../sql/operation.ts";
import { sql, type Statement } from "../../sql/statement.ts";
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
import { sessionNamed, type SessionName } from "../session-name.ts";
import { livingSession, type SessionRef } from "../session-row.ts";
import type { TriggerContext } from "./context.ts";
import {
  host,
  isGone,
  lockedRegistrant,
  lockedSubscription,
  registrantKey,
  shownSubscription,
  subscriptionColumns,
  subscriptionOf,
  subscriptionTable,
  type StoredSubscription,
  type Subscription,
  type SubscriptionRef,
  type SubscriptionRow,
} from "./subscription-row.ts";

/**
 * Locks the subscription that a read is about, if it exists.
 * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`
 */
export function* lockReadSubscription(ref: SubscriptionRef): Tx<void> {
  yield* lockedSubscription(yield* lockedRegistrant(ref.registrant), ref);
}

/** @throws HoldfastError `CORRUPT_ROW`, `SESSION_NOT_FOUND`, `SESSION_DELETED` */
export const readSubscription = storeOperation("readSubscription", {
  key: (input) => input.key,
  *one(
    _: TriggerContext,
    { key, registrant }: SubscriptionRef,
  ): Tx<StoredSubscription | undefined> {
    const session = yield* registrantKey(registrant);
    const found = yield* row<SubscriptionRow>(sql`
      SELECT ${subscriptionColumns} FROM holdfast_trigger_subscription
      WHERE session = ${session} AND name = ${key} AND deleted_at IS NULL`);
    return found && subscriptionOf(found);
  },
});

/** @throws HoldfastError `CORRUPT_ROW` */
export function shownIfFound(
  context: TriggerContext,
  found: StoredSubscription | undefined,
): Subscription | undefined {
  return found && shownSubscription(context, found);
}

export interface ListSubscriptionsOptions extends PageOptions {
  /** Only subscriptions of this session; null for those of the host. */
  readonly registrant?: SessionName | null;
  readonly sourceType?: string;
  readonly sourceKey?: string;
  readonly isEnabled?: boolean;
  /** Only subscriptions whose target has this definition. */
  readonly definition?: string;
}

interface SubscriptionFilter {
  /** Null for the host's, undefined for all. */
  readonly registrant: SessionRef | null | undefined;
  readonly sourceType: string | undefined;
  readonly sourceKey: string | undefined;
  readonly isEnabled: boolean | undefined;
  readonly definition: string | undefined;
}

/**
 * Subscriptions in the order of registrant and key.
 * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`
 */
export const subscriptionList: List<
  TriggerContext,
  [options?: ListSubscriptionsOptions],
  Subscription
> = list("listSubscriptions", {
  table: subscriptionTable,
  given(_: TriggerContext, options?: ListSubscriptionsOptions) {
    const { filter, page } = pageOf(options, [
      "registrant",
      "sourceType",
      "sourceKey",
      "isEnabled",
      "definition",
    ]);
    return { filter: checkedFilter(filter), page };
  },
  slice: subscriptionSlice,
  keyOf: ({ key }: SubscriptionRow) => String(key),
  itemOf: (context, found) => shownSubscription(context, subscriptionOf(found)),
});

function checkedFilter({
  registrant,
  sourceType,
  sourceKey,
  isEnabled,
  definition,
}: ListSubscriptionsOptions): SubscriptionFilter {
  return {
    registrant:
      registrant === undefined || registrant === null ? registrant : sessionNamed(registrant),
    sourceType: optionalFilter("sourceType", sourceType),
    sourceKey: optionalFilter("sourceKey", sourceKey),
    isEnabled: givenFlag("isEnabled", isEnabled),
    definition: optionalFilter("definition", definition),
  };
}

function optionalFilter(option: string, text: string | undefined): string | undefined {
  return text === undefined ? undefined : checkedFilterText(option, text);
}

function* subscriptionSlice(
  _: TriggerContext,
  filter: SubscriptionFilter,
  bounds: SliceBounds,
): Tx<Slice<SubscriptionRow>> {
  const { registrant } = filter;
  const session = registrant === undefined ? undefined : yield* registrantKey(registrant);
  const next = (after: Place | undefined, count: number) => sql`
    FROM holdfast_trigger_subscription
    WHERE deleted_at IS NULL ${condition(filter, session)}
      AND (session, name) > (${Number(after?.[0] ?? -1)}, ${String(after?.[1] ?? "")})
    ORDER BY session, name LIMIT ${count}`;
  const slice = yield* slicedByBytes(
    bounds,
    ({ session: own, name }: SubscriptionRow) => [own, name],
    function* (after, count) {
      const found = yield* rows<{ readonly bytes: number }>(sql`
        SELECT COALESCE(octet_length(content), 0) AS bytes ${next(after, count)}`);
      return found.map(({ bytes }) => bytes);
    },
    function* (after, count) {
      return yield* rows<SubscriptionRow>(sql`SELECT ${subscriptionColumns} ${next(after, count)}`);
    },
  );
  return { ...slice, rows: yield* ofTheLiving(slice.rows) };
}

function condition(
  { sourceType, sourceKey, isEnabled, definition }: SubscriptionFilter,
  session: number | undefined,
): Statement {
  const parts: Statement[] = [];
  if (session !== undefined) parts.push(sql`AND session = ${session}`);
  if (sourceType !== undefined) parts.push(sql`AND source_type = ${sourceType}`);
  if (sourceKey !== undefined) parts.push(sql`AND source_key = ${sourceKey}`);
  if (definition !== undefined) parts.push(sql`AND definition = ${definition}`);
  if (isEnabled === true) parts.push(sql`AND is_enabled = 1`);
  if (isEnabled === false) parts.push(sql`AND is_enabled = 0`);
  return parts.reduce((all, part) => sql`${all} ${part}`, sql``);
}

/** Leaves out subscriptions whose session was deleted and whose rows are not yet removed. */
function* ofTheLiving(page: readonly SubscriptionRow[]): Tx<readonly SubscriptionRow[]> {
  const gone = new Set<number>();
  const seen = new Set([host.key]);
  for (const { session, session_id: id, generation } of page) {
    if (seen.has(session) || id === null || generation === null) continue;
    seen.add(session);
    try {
      yield* livingSession({ id, generation });
    } catch (error) {
      if (!isGone(error)) throw error;
      gone.add(session);
    }
  }
  return page.filter(({ session }) => !gone.has(session));
}
