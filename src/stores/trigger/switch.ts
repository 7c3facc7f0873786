import { instantOf } from "../../model/clock.ts";
import type { Now } from "../../model/clock.ts";
import { scheduleSource, triggerSchedules } from "../../model/trigger.ts";
import { run, plainOperation } from "../../sql/operation.ts";
import type { Operation, Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import {
  pauseSchedule,
  removeSchedule,
  resumeSchedule,
} from "../schedule/put.ts";
import type { SubscriptionRef } from "./checks.ts";
import { assertRoom } from "./room.ts";
import { lockedRegistrant, lockedSubscription } from "./subscription-row.ts";
import type { SubscriptionRow } from "./subscription-row.ts";

export interface SwitchSubscription {
  readonly name: SubscriptionRef;
  readonly now: Now;
}

/**
 * Enables a subscription; false when it was enabled, or there is none. Of a
 * schedule, instants that have passed meanwhile do not fire.
 *
 * @throws HoldfastError `SUBSCRIPTION_INVALID`, `SESSION_NOT_FOUND`, `SESSION_DELETED`
 */
export const enableSubscription: Operation<SwitchSubscription, boolean> =
  plainOperation("enableSubscription", {
    key: (input: SwitchSubscription) => input.name.key,
    *one({ name, now }) {
      const found = yield* living(name);
      if (found === undefined || found.is_enabled === 1) return false;
      const at = instantOf(now);
      yield* assertRoom({ type: found.source_type, key: found.source_key });
      yield* run(sql`
        UPDATE holdfast_trigger_subscription SET is_enabled = 1, revision = revision + 1, changed_at = ${at}
        WHERE key = ${found.key}`);
      if (found.source_type === scheduleSource)
        yield* resumeSchedule({ ...scheduleOf(found), now });
      return true;
    },
  });

/**
 * Disables a subscription and keeps it; true only if it was enabled. What its
 * occurrences have started goes on.
 *
 * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`
 */
export const disableSubscription: Operation<SwitchSubscription, boolean> =
  plainOperation("disableSubscription", {
    key: (input: SwitchSubscription) => input.name.key,
    *one({ name, now }) {
      const found = yield* living(name);
      if (found === undefined || found.is_enabled === 0) return false;
      const at = instantOf(now);
      yield* run(sql`
        UPDATE holdfast_trigger_subscription SET is_enabled = 0, revision = revision + 1, changed_at = ${at}
        WHERE key = ${found.key}`);
      if (found.source_type === scheduleSource)
        yield* pauseSchedule({ ...scheduleOf(found), now });
      return true;
    },
  });

/**
 * Deletes a subscription; true when there was one. Its key may be used again,
 * and its revisions go on then. What its occurrences have started goes on too.
 *
 * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`
 */
export const deleteSubscription: Operation<SwitchSubscription, boolean> =
  plainOperation("deleteSubscription", {
    key: (input: SwitchSubscription) => input.name.key,
    *one({ name, now }) {
      const found = yield* living(name);
      if (found === undefined) return false;
      const at = instantOf(now);
      yield* run(sql`
        UPDATE holdfast_trigger_subscription SET content = NULL, definition = NULL, parts = '{}', is_enabled = 0,
          revision = revision + 1, changed_at = ${at}, deleted_at = ${at}
        WHERE key = ${found.key}`);
      if (found.source_type === scheduleSource)
        yield* removeSchedule(scheduleOf(found));
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
