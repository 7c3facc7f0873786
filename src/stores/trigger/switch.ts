import { instantOf } from "../../model/time/clock.ts";
import { scheduleSource, triggerSchedules } from "../../model/trigger/trigger.ts";
import type { WaitOptions } from "../../sql/database.ts";
import { run, storeOperation, type Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { onlyWait, type Call } from "../method.ts";
import { pauseSchedule, removeSchedule, resumeSchedule } from "../schedule/parts.ts";
import type { TriggerContext } from "./context.ts";
import { assertRoom } from "./subscribe.ts";
import {
  lockedRegistrant,
  lockedSubscription,
  subscriptionNamed,
  type SubscriptionName,
  type SubscriptionRef,
  type SubscriptionRow,
} from "./subscription-row.ts";

/**
 * An existing subscription, by its name.
 * @throws HoldfastError `NAME_INVALID`, `ID_MALFORMED`, `OPTION_INVALID`
 */
export function ofSubscription(
  _: TriggerContext,
  name: SubscriptionName,
  wait?: WaitOptions,
): Call<SubscriptionRef> {
  return { input: subscriptionNamed(name), wait: onlyWait(wait) };
}

/**
 * Enables a subscription; false when it was enabled or is unknown. Schedule instants that passed
 * while it was disabled do not fire.
 *
 * @throws HoldfastError `SUBSCRIPTION_INVALID`, `SESSION_NOT_FOUND`, `SESSION_DELETED`
 */
export const enableSubscription = storeOperation("enableSubscription", {
  key: (input) => input.key,
  *one(context: TriggerContext, name: SubscriptionRef): Tx<boolean> {
    const found = yield* living(name);
    if (found === undefined || found.is_enabled === 1) return false;
    const at = instantOf(() => context.clock.now());
    yield* assertRoom({ type: found.source_type, key: found.source_key });
    yield* run(sql`
      UPDATE holdfast_trigger_subscription SET is_enabled = 1, revision = revision + 1, changed_at = ${at}
      WHERE key = ${found.key}`);
    if (found.source_type === scheduleSource) yield* resumeSchedule(context)(scheduleOf(found));
    return true;
  },
});

/**
 * Disables a subscription and keeps it; true only if it was enabled. Processes that its occurrences
 * started continue.
 *
 * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`
 */
export const disableSubscription = storeOperation("disableSubscription", {
  key: (input) => input.key,
  *one(context: TriggerContext, name: SubscriptionRef): Tx<boolean> {
    const found = yield* living(name);
    if (found === undefined || found.is_enabled === 0) return false;
    const at = instantOf(() => context.clock.now());
    yield* run(sql`
      UPDATE holdfast_trigger_subscription SET is_enabled = 0, revision = revision + 1, changed_at = ${at}
      WHERE key = ${found.key}`);
    if (found.source_type === scheduleSource) yield* pauseSchedule(context)(scheduleOf(found));
    return true;
  },
});

/**
 * Deletes a subscription; true when it existed. Its key may be used again, and its revisions then
 * continue from here. Processes that its occurrences started continue too.
 *
 * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`
 */
export const deleteSubscription = storeOperation("deleteSubscription", {
  key: (input) => input.key,
  *one(context: TriggerContext, name: SubscriptionRef): Tx<boolean> {
    const found = yield* living(name);
    if (found === undefined) return false;
    const at = instantOf(() => context.clock.now());
    yield* run(sql`
      UPDATE holdfast_trigger_subscription SET content = NULL, definition = NULL, parts = '{}', is_enabled = 0,
        revision = revision + 1, changed_at = ${at}, deleted_at = ${at}
      WHERE key = ${found.key}`);
    if (found.source_type === scheduleSource) yield* removeSchedule(context)(scheduleOf(found));
    return true;
  },
});

function* living(name: SubscriptionRef): Tx<SubscriptionRow | undefined> {
  const registrant = yield* lockedRegistrant(name.registrant);
  const found = yield* lockedSubscription(registrant, name);
  return found?.deleted_at === null ? found : undefined;
}

function scheduleOf({ source_key: name }: SubscriptionRow): {
  readonly kind: string;
  readonly name: string;
} {
  return { kind: triggerSchedules, name };
}
