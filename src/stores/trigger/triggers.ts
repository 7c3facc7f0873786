import type { Duration } from "../../model/time/durations.ts";
import { derivedSourceKey, triggerSchedules } from "../../model/trigger/trigger.ts";
import type { Database, WaitOptions } from "../../sql/database.ts";
import type { StoreOptions } from "../context.ts";
import type { Damaged } from "../damage.ts";
import { lists, type Page, type PageOptions } from "../list.ts";
import { readsLocking, writes, type Method } from "../method.ts";
import type { ProcessCancelOptions } from "../process/context.ts";
import type { SweepOptions } from "../removal.ts";
import type { Scheduler, SchedulerOptions } from "../schedule/schedule-row.ts";
import { runOwnSchedules } from "../schedule/schedules.ts";
import { cancelOccurrence, givenCancelOccurrence } from "./cancel.ts";
import { checkedSourceType, type SubscriptionTerms } from "./content.ts";
import { triggerContext } from "./context.ts";
import {
  givenReadOccurrence,
  lockReadOccurrence,
  occurrenceList,
  readOccurrence,
  shownOccurrence,
  unstartedList,
  type ListOccurrencesOptions,
  type OccurrenceView,
  type UnstartedDelivery,
} from "./read-occurrences.ts";
import {
  lockReadSubscription,
  readSubscription,
  shownIfFound,
  subscriptionList,
  type ListSubscriptionsOptions,
} from "./read-subscriptions.ts";
import {
  fireTrigger,
  givenRecord,
  recordOccurrence,
  shownRecorded,
  type OccurrenceDraft,
  type RecordOccurrenceOutcome,
} from "./record.ts";
import { removeOldOccurrences } from "./retention.ts";
import {
  givenRevise,
  givenSubscribe,
  reviseSubscription,
  shownSubscribed,
  subscribe,
  type ReviseSubscriptionOptions,
  type SubscriptionDraft,
} from "./subscribe.ts";
import type { Subscription, SubscriptionName } from "./subscription-row.ts";
import {
  deleteSubscription,
  disableSubscription,
  enableSubscription,
  ofSubscription,
} from "./switch.ts";

type RemovedOccurrences = {
  readonly removed: number;
  /** Removed occurrences and their deliveries. */
  readonly rows: number;
  /** Occurrences that were kept because a process that they started has not ended. */
  readonly kept: number;
};

/** Subscriptions that start processes, on events and on schedules, and the recorded occurrences. */
export interface Triggers {
  /**
   * Subscribes to a source or to a schedule of its own. Returns the existing subscription when it
   * is the same.
   * @throws HoldfastError `SUBSCRIPTION_EXISTS`, `SUBSCRIPTION_INVALID`, `OPTION_INVALID`, `NAME_INVALID`, `CRON_INVALID`, `TIME_ZONE_INVALID`, `INTERVAL_INVALID`, `NOT_SERIALIZABLE`, `SESSION_NOT_FOUND`, `SESSION_DELETED`
   * @example await triggers.subscribe({ key: "daily", registrant: "chat-7", source: { cron: "0 9 * * *" }, target: { kind: "report" } });
   */
  readonly subscribe: Method<
    [draft: SubscriptionDraft, wait?: WaitOptions],
    {
      readonly subscription: Subscription;
      /** True when the same subscription existed already. */
      readonly existed: boolean;
    }
  >;
  /**
   * Replaces the terms of a subscription. Its key, registrant and enabled state stay, so a draft
   * that has them is refused.
   * @throws HoldfastError `SUBSCRIPTION_NOT_FOUND`, `SUBSCRIPTION_CHANGED`, `CORRUPT_ROW`, and the same as `subscribe`
   * @example await triggers.revise("daily", { source: { cron: "0 8 * * *" }, target: { kind: "report" } }, { expectedRevision: 1 });
   */
  readonly revise: Method<
    [name: SubscriptionName, terms: SubscriptionTerms, options?: ReviseSubscriptionOptions],
    {
      readonly subscription: Subscription;
      /** False when the subscription has these terms already. */
      readonly isChanged: boolean;
    }
  >;
  /**
   * Enables a subscription; true if it was disabled. Schedule instants that passed while it was
   * disabled do not fire.
   * @throws HoldfastError `SUBSCRIPTION_INVALID` when too many listen to its source, `SESSION_NOT_FOUND`, `SESSION_DELETED`
   */
  readonly enable: Method<[name: SubscriptionName, wait?: WaitOptions], boolean>;
  /**
   * Disables a subscription; true only if it was enabled. The subscription and the processes that
   * it started stay.
   * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`
   */
  readonly disable: Method<[name: SubscriptionName, wait?: WaitOptions], boolean>;
  /**
   * Deletes a subscription; true when it existed. The processes that it started continue.
   * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`
   */
  readonly delete: Method<[name: SubscriptionName, wait?: WaitOptions], boolean>;
  /**
   * Returns a subscription; undefined when it is unknown.
   * @throws HoldfastError `CORRUPT_ROW`, `SESSION_NOT_FOUND`, `SESSION_DELETED`
   */
  readonly get: Method<[name: SubscriptionName, wait?: WaitOptions], Subscription | undefined>;
  /**
   * Subscriptions in the order of registrant and key.
   * @throws HoldfastError `CURSOR_INVALID`, `OPTION_INVALID`, `SESSION_NOT_FOUND`, `SESSION_DELETED`
   * @example const { items, next } = await triggers.list({ registrant: "chat-7", isEnabled: true });
   */
  readonly list: Method<[options?: ListSubscriptionsOptions], Page<Subscription>>;
  /**
   * Computes the key of a source that is identified by a value. Equal values have the same key.
   * Reads nothing.
   * @throws HoldfastError `NAME_INVALID`, `NOT_SERIALIZABLE`
   */
  sourceKey(type: string, value: unknown): string;
  /**
   * Records an occurrence, and registers a process for each enabled subscription to its source, in
   * one transaction. Workers find the processes in the recovery worklist. Each key is recorded
   * once, so the call may be repeated.
   * @throws HoldfastError `OCCURRENCE_CONFLICT`, `SUBSCRIPTION_INVALID`, `OPTION_INVALID`, `NAME_INVALID`, `NOT_SERIALIZABLE`, `VALUE_TOO_LARGE`, `TRANSACTION_CONFLICT`
   * @example await triggers.record({ key: "github:4711", source: { type: "webhook", key: "github" }, payload: body });
   * @example
   * const record = triggers.record.prepare({ key: "order:42", source: { type: "order", key: "new" } });
   * await database.write(
   *   "order",
   *   function* () {
   *     yield* run(sql`INSERT INTO app_order (id) VALUES (42)`);
   *     yield* record();
   *   },
   *   { isolation: "readCommitted" },
   * );
   */
  readonly record: Method<[draft: OccurrenceDraft, wait?: WaitOptions], RecordOccurrenceOutcome>;
  /**
   * Returns an occurrence with its deliveries.
   * @throws HoldfastError `OCCURRENCE_NOT_FOUND`, `NAME_INVALID`, `CORRUPT_ROW`
   */
  readonly occurrence: Method<[key: string, wait?: WaitOptions], OccurrenceView>;
  /**
   * Occurrences with their deliveries, most recently recorded first.
   * @throws HoldfastError `CURSOR_INVALID`, `SUBSCRIPTION_NOT_FOUND`, `SESSION_NOT_FOUND`, `SESSION_DELETED`
   */
  readonly occurrences: Method<[options?: ListOccurrencesOptions], Page<OccurrenceView>>;
  /**
   * Asks all running processes that an occurrence started to stop. Returns their ids, and names the
   * unreadable ones. May be repeated.
   * @throws HoldfastError `OCCURRENCE_NOT_FOUND`, `NAME_INVALID`
   */
  readonly cancelOccurrence: Method<
    [key: string, options?: ProcessCancelOptions],
    { readonly items: readonly string[]; readonly damaged: readonly Damaged[] }
  >;
  /**
   * Registered processes that no worker has started yet: the first work of a worker that starts up.
   * @throws HoldfastError `CURSOR_INVALID`
   */
  readonly unstarted: Method<[options?: PageOptions], Page<UnstartedDelivery>>;
  /**
   * Removes occurrences older than a given age and their deliveries, once the processes that they
   * started have ended. Works in small transactions.
   * @throws HoldfastError `DURATION_INVALID`, `OPTION_INVALID`, `ABORTED`
   * @example const { removed, kept } = await triggers.removeOccurrences({ olderThan: "90 days" });
   */
  removeOccurrences(
    policy: { readonly olderThan: Duration },
    options?: SweepOptions<RemovedOccurrences>,
  ): Promise<RemovedOccurrences>;
  /**
   * Fires the schedules of subscriptions until it is closed. Each instant fires once, however many
   * processes run this. The value of a fired instant is the one that `record` would have returned.
   * @throws HoldfastError `OPTION_INVALID`
   * @example await using running = triggers.run({ onError: (error) => log(error) });
   */
  run(options?: SchedulerOptions): Scheduler;
}

/** Holds nothing but running schedulers, so one database can have any number of these. */
export function triggers(database: Database, options?: StoreOptions): Triggers {
  const context = triggerContext(database, options);
  return {
    subscribe: writes(context, subscribe, givenSubscribe, shownSubscribed),
    revise: writes(context, reviseSubscription, givenRevise, shownSubscribed),
    enable: writes(context, enableSubscription, ofSubscription),
    disable: writes(context, disableSubscription, ofSubscription),
    delete: writes(context, deleteSubscription, ofSubscription),
    get: readsLocking(lockReadSubscription)(
      context,
      readSubscription,
      ofSubscription,
      shownIfFound,
    ),
    list: lists(context, subscriptionList),
    sourceKey: (type, value) => derivedSourceKey(context.hash, checkedSourceType(type), value),
    record: writes(context, recordOccurrence, givenRecord, shownRecorded),
    occurrence: readsLocking(lockReadOccurrence)(
      context,
      readOccurrence,
      givenReadOccurrence,
      shownOccurrence,
    ),
    occurrences: lists(context, occurrenceList),
    cancelOccurrence: writes(context, cancelOccurrence, givenCancelOccurrence),
    unstarted: lists(context, unstartedList),
    removeOccurrences: (policy, given) => removeOldOccurrences(context, policy, given),
    run: (given) =>
      runOwnSchedules(context, { [triggerSchedules]: (due) => fireTrigger(context, due) }, given),
  };
}
