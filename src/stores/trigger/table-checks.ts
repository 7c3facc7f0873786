import { changedPart } from "../../model/trigger/trigger.ts";
import { sql } from "../../sql/statement.ts";
import { processIdsThere } from "../process/process-row.ts";
import { inScopes, livingScopes } from "../session-checks.ts";
import { byKey, distinct, tableCheck } from "../table-check.ts";
import type { CheckTools, TableCheck } from "../table-check.ts";
import { deliveryOf, hashedPayload, occurrenceTable } from "./occurrence-row.ts";
import type { DeliveryRow, OccurrenceRow } from "./occurrence-row.ts";
import {
  contentOf,
  knownSubscription,
  subscriptionOf,
  subscriptionTable,
} from "./subscription-row.ts";
import type { SubscriptionRow } from "./subscription-row.ts";

const subscription = tableCheck<SubscriptionRow>({
  table: subscriptionTable,
  select: sql`
    SELECT t.key, t.session, t.session_id, t.generation, t.name, t.revision, t.parts, t.is_enabled, t.source_type,
      t.source_key, t.content, t.created_at, t.changed_at, t.deleted_at`,
  from: sql`FROM holdfast_trigger_subscription t`,
  ...byKey,
  weight: sql`COALESCE(length(t.content), 0)`,
  keyOf: ({ key }) => String(key),
  judge: faultOfSubscription,
  partners: inScopes,
});

function faultOfSubscription(row: SubscriptionRow, tools: CheckTools): string | undefined {
  if (row.deleted_at !== null) return undefined;
  const { parts } = knownSubscription(row);
  const content = contentOf(tools, row.key, subscriptionOf(row).content);
  const differing = changedPart(tools.agrees, { ...content }, parts);
  return differing && `Its ${differing} does not match its hash.`;
}

const occurrence = tableCheck<OccurrenceRow>({
  table: occurrenceTable,
  select: sql`
    SELECT t.key, t.id, t.source_type, t.source_key, t.payload_hash, t.payload, t.occurred_at, t.recorded_at`,
  from: sql`FROM holdfast_trigger_occurrence t`,
  ...byKey,
  weight: sql`length(t.payload)`,
  keyOf: ({ id }) => id,
  judge(row, { decode, agrees }) {
    const hashed = hashedPayload({ type: row.source_type }, decode(row.payload));
    return agrees("occurrence", 1, hashed, row.payload_hash)
      ? undefined
      : "Its payload does not match its hash.";
  },
});

interface OwnedDelivery extends DeliveryRow {
  readonly subscription: number;
  readonly subscription_key: number | null;
  readonly occurrence_key: number | null;
}

const delivery = tableCheck<OwnedDelivery>({
  table: "holdfast_trigger_delivery",
  select: sql`
    SELECT t.occurrence, t.subscription, t.revision, t.process, t.refusal, s.session, s.session_id, s.generation, s.name,
      s.key AS subscription_key, o.key AS occurrence_key`,
  from: sql`
    FROM holdfast_trigger_delivery t LEFT JOIN holdfast_trigger_subscription s ON s.key = t.subscription
      LEFT JOIN holdfast_trigger_occurrence o ON o.key = t.occurrence`,
  order: sql`t.occurrence, t.subscription`,
  behind: (last) =>
    sql`(t.occurrence, t.subscription) > (${last.occurrence}, ${last.subscription})`,
  keyOf: (row) =>
    `${row.occurrence}/${row.subscription_key === null ? row.subscription : row.name}`,
  judge(row) {
    if (row.subscription_key === null) return "Its subscription is missing.";
    deliveryOf(row);
    return (row.process === null) === (row.refusal === null)
      ? "It has both a process and a refusal, or neither."
      : undefined;
  },
  *partners(found) {
    const there = yield* processIdsThere(distinct(found, ({ process }) => process));
    const sessions = yield* livingScopes(found);
    return (row) => {
      // The occurrences of a deleted session are removed first, in slices.
      if (row.occurrence_key === null && sessions.has(row.session))
        return "Its occurrence is missing.";
      return row.process !== null && !there.has(row.process)
        ? "The process that it started is missing."
        : undefined;
    };
  },
});

export const triggerChecks: readonly TableCheck[] = [subscription, occurrence, delivery];
