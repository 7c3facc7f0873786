import type { Encoded } from "../../model/encoded.ts";
import { row, rows, plainOperation } from "../../sql/operation.ts";
import type { Operation, Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import type { Statement } from "../../sql/statement.ts";
import { sift } from "../damage.ts";
import type { Sifted } from "../damage.ts";
import { livingSession } from "../session/session-row.ts";
import type { SessionRef } from "../session/session-row.ts";
import type { SubscriptionRef } from "./checks.ts";
import {
  host,
  isGone,
  subscriptionColumns,
  subscriptionOf,
  subscriptionTable,
} from "./subscription-row.ts";
import type { Subscription, SubscriptionRow } from "./subscription-row.ts";

/** @throws HoldfastError `CORRUPT_ROW`, `SESSION_NOT_FOUND`, `SESSION_DELETED` */
export const readSubscription: Operation<
  SubscriptionRef,
  Subscription<Encoded> | undefined
> = plainOperation("readSubscription", {
  key: (input: SubscriptionRef) => input.key,
  *one({ key, registrant }) {
    const session = yield* registrantKey(registrant);
    const found = yield* row<SubscriptionRow>(sql`
      SELECT ${subscriptionColumns} FROM holdfast_trigger_subscription
      WHERE session = ${session} AND name = ${key} AND deleted_at IS NULL`);
    return found && subscriptionOf(found);
  },
});

export function* registrantKey(registrant: SessionRef | null): Tx<number> {
  return registrant === null
    ? host.key
    : (yield* livingSession(registrant)).key;
}

export interface ListSubscriptions {
  /** Null for the host's, undefined for all. */
  readonly registrant: SessionRef | null | undefined;
  readonly sourceType: string | undefined;
  readonly sourceKey: string | undefined;
  readonly isEnabled: boolean | undefined;
  /** Of their targets. */
  readonly definition: string | undefined;
  /** The last one of the page before. */
  readonly after: SubscriptionPlace | undefined;
  readonly limit: number;
}

/** A place in the order of registrant and key. */
export interface SubscriptionPlace {
  readonly session: number;
  readonly name: string;
}

export interface SubscriptionRows extends Sifted<Subscription<Encoded>> {
  readonly next: SubscriptionPlace | undefined;
}

/** A page of subscriptions in the order of registrant and key. What cannot be read is named. */
export const listSubscriptions: Operation<ListSubscriptions, SubscriptionRows> =
  plainOperation("listSubscriptions", {
    key: (input: ListSubscriptions) => input.sourceKey ?? "",
    *one(input) {
      const { registrant, limit } = input;
      const session =
        registrant === undefined ? undefined : yield* registrantKey(registrant);
      const after = input.after ?? { session: -1, name: "" };
      const found = yield* rows<SubscriptionRow>(sql`
        SELECT ${subscriptionColumns} FROM holdfast_trigger_subscription
        WHERE deleted_at IS NULL ${filter(input, session)}
          AND (session, name) > (${after.session}, ${after.name})
        ORDER BY session, name LIMIT ${limit + 1}`);
      const page = found.slice(0, limit);
      const last = page.at(-1);
      return {
        ...sift(
          subscriptionTable,
          yield* ofTheLiving(page),
          ({ key }) => String(key),
          subscriptionOf,
        ),
        next:
          found.length > limit && last !== undefined
            ? { session: last.session, name: last.name }
            : undefined,
      };
    },
  });

function filter(
  { sourceType, sourceKey, isEnabled, definition }: ListSubscriptions,
  session: number | undefined,
): Statement {
  const parts: Statement[] = [];
  if (session !== undefined) parts.push(sql`AND session = ${session}`);
  if (sourceType !== undefined)
    parts.push(sql`AND source_type = ${sourceType}`);
  if (sourceKey !== undefined) parts.push(sql`AND source_key = ${sourceKey}`);
  if (definition !== undefined) parts.push(sql`AND definition = ${definition}`);
  if (isEnabled === true) parts.push(sql`AND is_enabled = 1`);
  if (isEnabled === false) parts.push(sql`AND is_enabled = 0`);
  return parts.reduce((all, part) => sql`${all} ${part}`, sql``);
}

/** Without those whose session was deleted and not yet cleared away. */
function* ofTheLiving(
  page: readonly SubscriptionRow[],
): Tx<readonly SubscriptionRow[]> {
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
