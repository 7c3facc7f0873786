import { subscriptionInvalid } from "../../model/trigger-errors.ts";
import type { TriggerSource } from "../../model/trigger.ts";
import { row } from "../../sql/operation.ts";
import type { Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import type { SubscriptionRow } from "./subscription-row.ts";

/**
 * So many processes are started by one occurrence, in one transaction that
 * holds up the other writers of SQLite: 1,000 took 0.35 s in memory and 3.4 s
 * on Postgres. Some more may slip in at once.
 */
const subscriptionsPerSourceMax = 64;

/** @throws HoldfastError `SUBSCRIPTION_INVALID` when too many listen to a source */
export function* assertRoom(
  { type, key }: TriggerSource,
  before?: SubscriptionRow,
): Tx<void> {
  if (before?.source_type === type && before.source_key === key) return;
  const last = yield* row(sql`
    SELECT key FROM holdfast_trigger_subscription
    WHERE source_type = ${type} AND source_key = ${key} AND is_enabled = 1
    ORDER BY key LIMIT 1 OFFSET ${subscriptionsPerSourceMax - 1}`);
  if (last !== undefined)
    throw subscriptionInvalid(
      "$.source",
      `has ${subscriptionsPerSourceMax} enabled subscriptions already, which is the limit. Let one of them start the others, or disable one.`,
      { max: subscriptionsPerSourceMax },
    );
}
