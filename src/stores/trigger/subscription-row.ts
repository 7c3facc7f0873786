import { corruptRow } from "../../model/corrupt-row.ts";
import { isSealed } from "../../model/values/payload-mark.ts";
import type { Encoded } from "../../model/values/encoded.ts";
import { isHoldfastError } from "../../model/errors.ts";
import type { SessionId } from "../../model/ids/session-id.ts";
import { checkedText } from "../../model/shape.ts";
import { isRecord } from "../../model/values/spoken-kind.ts";
import {
  changedPart,
  scheduleSource,
  triggerSchedules,
  type KnownSubscription,
  type Registrant,
  type SubscriptionPartHashes,
  type TriggerSource,
} from "../../model/trigger/trigger.ts";
import { integersOf, lockRow, textsOf } from "../../sql/dialect.ts";
import { row, rows, run, type Tx } from "../../sql/operation.ts";
import { sql, type Statement } from "../../sql/statement.ts";
import type { ValueCodec } from "../../model/values/value-codec.ts";
import type { StoreContext } from "../context.ts";
import { changedRow } from "../damage.ts";
import type { OwnedRows } from "../removal.ts";
import { forgetSchedules } from "../schedule/parts.ts";
import { sessionNamed, type SessionName } from "../session-name.ts";
import { livingSession, lockedSession, type SessionRef } from "../session-row.ts";
import { isContent, type SubscriptionContent } from "./content.ts";

/**
 * The name of a subscription as callers pass it: its key, and the session that made it. Without a
 * session it is the host's.
 */
export type SubscriptionName =
  string | { readonly key: string; readonly registrant?: SessionName | null };

export interface SubscriptionRef {
  readonly key: string;
  readonly registrant: SessionRef | null;
}

const keyCharactersMax = 256;

/** @throws HoldfastError `NAME_INVALID`, `ID_MALFORMED`, `OPTION_INVALID` */
export function subscriptionNamed(name: SubscriptionName): SubscriptionRef {
  const { key, registrant } = isRecord(name) ? name : { key: name, registrant: null };
  return {
    key: checkedText("The key of a subscription", key, keyCharactersMax),
    registrant: registrant === undefined || registrant === null ? null : sessionNamed(registrant),
  };
}

export interface SubscriptionRow {
  readonly key: number;
  readonly session: number;
  readonly session_id: SessionId | null;
  readonly generation: number | null;
  readonly name: string;
  readonly revision: number;
  readonly parts: string;
  readonly is_enabled: number;
  readonly source_type: string;
  readonly source_key: string;
  readonly content: Encoded | null;
  readonly created_at: number;
  readonly changed_at: number;
  readonly deleted_at: number | null;
}

export const subscriptionColumns: Statement = sql`
  key, session, session_id, generation, name, revision, parts, is_enabled, source_type, source_key,
  content, created_at, changed_at, deleted_at`;

export const subscriptionTable = "holdfast_trigger_subscription";

/** The current state of a subscription. */
export interface Subscription {
  readonly key: string;
  /** The session that made it; null for the host. */
  readonly registrant: Registrant | null;
  /** The number of changes, including enabling and disabling. */
  readonly revision: number;
  readonly isEnabled: boolean;
  readonly source: TriggerSource;
  readonly content: SubscriptionContent;
  readonly createdAt: number;
  readonly changedAt: number;
}

/** A subscription as stored. */
export interface StoredSubscription extends Omit<Subscription, "content"> {
  readonly content: Encoded;
  readonly parts: SubscriptionPartHashes;
}

/** @throws HoldfastError `CORRUPT_ROW` */
export function subscriptionOf(found: SubscriptionRow): StoredSubscription {
  const { key, content } = found;
  if (content === null) throw corruptRow(subscriptionTable, key, "says nothing");
  return {
    key: found.name,
    registrant: registrantOf(found),
    revision: found.revision,
    isEnabled: found.is_enabled === 1,
    source: { type: found.source_type, key: found.source_key },
    content,
    parts: partsOf(found),
    createdAt: found.created_at,
    changedAt: found.changed_at,
  };
}

export function registrantOf(
  found: Pick<SubscriptionRow, "session" | "session_id" | "generation">,
): { readonly id: SessionId; readonly generation: number } | null {
  const { session, session_id: id, generation } = found;
  if (session === host.key) return null;
  if (id === null || generation === null)
    throw corruptRow(subscriptionTable, session, "lacks its session");
  return { id, generation };
}

/** A subscription with its terms. @throws HoldfastError `CORRUPT_ROW` */
export function shownSubscription(
  { codec }: Pick<StoreContext, "codec">,
  { parts, ...subscription }: StoredSubscription,
): Subscription {
  const { key } = subscription;
  const content = contentOf(codec, key, subscription.content);
  const agrees: ValueCodec["agrees"] = (...hashed) => codec.agrees(...hashed);
  if (changedPart(agrees, { ...content }, parts) !== undefined)
    throw changedRow(subscriptionTable, key);
  return { ...subscription, content };
}

/** Decodes the terms of a subscription. @throws HoldfastError `CORRUPT_ROW` */
export function contentOf(
  { decode }: { readonly decode: (stored: Encoded) => unknown },
  key: string | number,
  stored: Encoded,
): SubscriptionContent {
  let content: unknown;
  try {
    content = decode(stored);
  } catch (cause) {
    if (isSealed(cause)) throw cause;
    throw corruptRow(
      subscriptionTable,
      key,
      "has terms that the codec cannot read (if its keys are right)",
      { cause },
    );
  }
  if (isContent(content)) return content;
  throw corruptRow(subscriptionTable, key, "has invalid terms");
}

export function knownSubscription(found: SubscriptionRow): KnownSubscription {
  return {
    revision: found.revision,
    isDeleted: found.deleted_at !== null,
    isEnabled: found.is_enabled === 1,
    parts: partsOf(found),
  };
}

function partsOf({ key, parts }: SubscriptionRow): SubscriptionPartHashes {
  try {
    return JSON.parse(parts) as SubscriptionPartHashes;
  } catch (cause) {
    throw corruptRow(subscriptionTable, key, "has parts that are not JSON", {
      cause,
    });
  }
}

/** The row of the subscribing session, or of the host. */
export interface RegistrantRoot {
  readonly key: number;
  readonly id: SessionId | null;
  readonly generation: number | null;
}

/** Sessions have keys from 1 on. */
export const host: RegistrantRoot = { key: 0, id: null, generation: null };

/**
 * Locks the session before any of its rows change.
 * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`
 */
export function* lockedRegistrant(registrant: SessionRef | null): Tx<RegistrantRoot> {
  return registrant === null ? host : yield* lockedSession(registrant);
}

/**
 * The key of a registrant's session, which must exist.
 * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`
 */
export function* registrantKey(registrant: SessionRef | null): Tx<number> {
  return registrant === null ? host.key : (yield* livingSession(registrant)).key;
}

/** Locks a session if it still exists. */
export function* lockedIfLiving(ref: SessionRef): Tx<number | undefined> {
  try {
    return (yield* lockedSession(ref)).key;
  } catch (error) {
    if (isGone(error)) return undefined;
    throw error;
  }
}

/** Tests whether an error means that a session never existed or was deleted. */
export function isGone(error: unknown): boolean {
  return (
    isHoldfastError(error) &&
    (error.code === "SESSION_NOT_FOUND" || error.code === "SESSION_DELETED")
  );
}

/** The row under a key, tombstones included, locked until the transaction ends. */
export function* lockedSubscription(
  registrant: RegistrantRoot,
  { key }: Pick<SubscriptionRef, "key">,
): Tx<SubscriptionRow | undefined> {
  return yield* row<SubscriptionRow>(sql`
    SELECT ${subscriptionColumns} FROM holdfast_trigger_subscription
    WHERE session = ${registrant.key} AND name = ${key} ${lockRow}`);
}

/** The source of a subscription that has a schedule. Nothing else can name it. */
export function ownSource(registrant: number, key: string): TriggerSource {
  return { type: scheduleSource, key: `${registrant}/${key}` };
}

/** The subscriptions of a deleted session. */
export const triggersOwned: readonly OwnedRows[] = [
  { table: subscriptionTable, remove: forgetTriggersOf },
];

/**
 * Removes up to `rowsMax` rows of the subscriptions of a deleted session: schedules and their
 * occurrences, deliveries, subscriptions. Fewer means that nothing is left. Processes are not
 * removed: they may belong to others by now.
 */
function* forgetTriggersOf(sessionKey: number, rowsMax: number): Tx<number> {
  // Subscriptions are locked in the order of `record`, and before their schedules, as firing a
  // schedule does.
  const found = yield* rows<{
    readonly key: number;
    readonly name: string;
  }>(sql`
    SELECT key, name FROM holdfast_trigger_subscription
    WHERE session = ${sessionKey} ORDER BY session, name LIMIT ${rowsMax} ${lockRow}`);
  if (found.length === 0) return 0;
  const keys = found.map(({ key }) => key);
  const names = found.map(({ name }) => ownSource(sessionKey, name).key);
  // Schedules go first, so that no instant is recorded while the rest is removed in slices.
  let removed = yield* forgetSchedules(triggerSchedules, names, rowsMax);
  // Occurrences are locked before their deliveries, as retention does.
  if (removed < rowsMax)
    removed += yield* run(sql`
      DELETE FROM holdfast_trigger_occurrence WHERE key IN (
        SELECT key FROM holdfast_trigger_occurrence
        WHERE source_type = ${scheduleSource} AND source_key IN ${textsOf(names)}
        ORDER BY key LIMIT ${rowsMax - removed})`);
  if (removed < rowsMax)
    removed += yield* run(sql`
      DELETE FROM holdfast_trigger_delivery WHERE (occurrence, subscription) IN (
        SELECT occurrence, subscription FROM holdfast_trigger_delivery
        WHERE subscription IN ${integersOf(keys)} ORDER BY subscription, occurrence LIMIT ${rowsMax - removed})`);
  // Subscriptions go last, since the rest is found through them.
  const last = keys.slice(0, rowsMax - removed);
  if (last.length > 0)
    removed += yield* run(sql`
      DELETE FROM holdfast_trigger_subscription WHERE key IN ${integersOf(last)}`);
  return removed;
}
