import type { Duration } from "../../model/time/durations.ts";
import { derivedSourceKey, triggerSchedules } from "../../model/trigger/trigger.ts";
import type { Database, WaitOptions } from "../../sql/database.ts";
import type { StoreOptions } from "../context.ts";
import type { Damaged } from "../damage.ts";
import { lists, type Page, type PageOptions } from "../list.ts";
import { reads, writes, type Method } from "../method.ts";
import type { ProcessCancelOptions } from "../process/context.ts";
import type { SweepOptions } from "../removal.ts";
import type { Scheduler, SchedulerOptions } from "../schedule/schedule-row.ts";
import { runOwnSchedules } from "../schedule/schedules.ts";
import { cancelOccurrence, givenCancelOccurrence } from "./cancel.ts";
import { checkedSourceType, type SubscriptionTerms } from "./content.ts";
import { triggerContext } from "./context.ts";
import {
  givenReadOccurrence,
  occurrenceList,
  readOccurrence,
  shownOccurrence,
  unstartedList,
  type ListOccurrencesOptions,
  type OccurrenceView,
  type UnstartedDelivery,
} from "./read-occurrences.ts";
import {
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
  /** Occurrences with their deliveries. */
  readonly rows: number;
  /** Left because a process that they started has not ended. */
  readonly kept: number;
};

/** What starts processes: subscriptions to things that happen and to schedules, and what has happened. */
export interface Triggers {
  /**
   * Subscribes to a source, or to a schedule of its own, or finds the same
   * subscription that was made before.
   * @throws HoldfastError `SUBSCRIPTION_EXISTS`, `SUBSCRIPTION_INVALID`, `OPTION_INVALID`, `NAME_INVALID`, `CRON_INVALID`, `TIME_ZONE_INVALID`, `INTERVAL_INVALID`, `NOT_SERIALIZABLE`, `SESSION_NOT_FOUND`, `SESSION_DELETED`
   * @example await triggers.subscribe({ key: "daily", registrant: "chat-7", source: { cron: "0 9 * * *" }, target: { kind: "report" } });
   */
  readonly subscribe: Method<
    [draft: SubscriptionDraft, wait?: WaitOptions],
    {
      readonly subscription: Subscription;
      /** True when the same was said before. */
      readonly existed: boolean;
    }
  >;
  /**
   * Replaces all that a subscription says. Its key and registrant stay as they
   * are, and whether it is enabled, so a draft that has them is refused.
   * @throws HoldfastError `SUBSCRIPTION_NOT_FOUND`, `SUBSCRIPTION_CHANGED`, `CORRUPT_ROW`, and the same as `subscribe`
   * @example await triggers.revise("daily", { source: { cron: "0 8 * * *" }, target: { kind: "report" } }, { expectedRevision: 1 });
   */
  readonly revise: Method<
    [name: SubscriptionName, terms: SubscriptionTerms, options?: ReviseSubscriptionOptions],
    {
      readonly subscription: Subscription;
      /** False when it says so already. */
      readonly isChanged: boolean;
    }
  >;
  /**
   * Enables a subscription; true if it was disabled. Instants of a schedule
   * that have passed meanwhile do not fire.
   * @throws HoldfastError `SUBSCRIPTION_INVALID` when too many listen to its source, `SESSION_NOT_FOUND`, `SESSION_DELETED`
   */
  readonly enable: Method<[name: SubscriptionName, wait?: WaitOptions], boolean>;
  /**
   * Disables a subscription; true only if it was enabled. Keeps it, and what
   * it started.
   * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`
   */
  readonly disable: Method<[name: SubscriptionName, wait?: WaitOptions], boolean>;
  /**
   * Deletes a subscription; true when there was one. What it started goes on.
   * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`
   */
  readonly delete: Method<[name: SubscriptionName, wait?: WaitOptions], boolean>;
  /**
   * A subscription; undefined when there is none.
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
   * The key of a source that is known by its value: the same for equal values.
   * Reads nothing.
   * @throws HoldfastError `NAME_INVALID`, `NOT_SERIALIZABLE`
   */
  sourceKey(type: string, value: unknown): string;
  /**
   * Records that something happened, and registers a process for each enabled
   * subscription to its source, in one transaction. Workers find them in the
   * recovery worklist of the processes. Once for each key, so it may be
   * repeated.
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
   * An occurrence with its deliveries.
   * @throws HoldfastError `OCCURRENCE_NOT_FOUND`, `NAME_INVALID`, `CORRUPT_ROW`
   */
  readonly occurrence: Method<[key: string, wait?: WaitOptions], OccurrenceView>;
  /**
   * Occurrences with their deliveries, the latest recorded first.
   * @throws HoldfastError `CURSOR_INVALID`, `SUBSCRIPTION_NOT_FOUND`, `SESSION_NOT_FOUND`, `SESSION_DELETED`
   */
  readonly occurrences: Method<[options?: ListOccurrencesOptions], Page<OccurrenceView>>;
  /**
   * Asks all processes that an occurrence has started and that still run to
   * stop; answers which, and names those that cannot be read. May be repeated.
   * @throws HoldfastError `OCCURRENCE_NOT_FOUND`, `NAME_INVALID`
   */
  readonly cancelOccurrence: Method<
    [key: string, options?: ProcessCancelOptions],
    { readonly items: readonly string[]; readonly damaged: readonly Damaged[] }
  >;
  /**
   * What occurrences have registered and no worker has begun: what a worker
   * that starts up has to do first.
   * @throws HoldfastError `CURSOR_INVALID`
   */
  readonly unstarted: Method<[options?: PageOptions], Page<UnstartedDelivery>>;
  /**
   * Removes occurrences that were recorded longer ago, with their deliveries,
   * once what they started has ended; in small transactions.
   * @throws HoldfastError `DURATION_INVALID`, `OPTION_INVALID`, `ABORTED`
   * @example const { removed, kept } = await triggers.removeOccurrences({ olderThan: "90 days" });
   */
  removeOccurrences(
    policy: { readonly olderThan: Duration },
    options?: SweepOptions<RemovedOccurrences>,
  ): Promise<RemovedOccurrences>;
  /**
   * Fires the schedules of subscriptions until it is closed: each instant
   * once, however many processes run this. The value of what was fired is what
   * `record` would have answered.
   * @throws HoldfastError `OPTION_INVALID`
   * @example await using running = triggers.run({ onError: (error) => log(error) });
   */
  run(options?: SchedulerOptions): Scheduler;
}

/**
 * Holds nothing but schedulers that were started, so there may be any number
 * of these over one database.
 */
export function triggers(database: Database, options?: StoreOptions): Triggers {
  const context = triggerContext(database, options);
  return {
    subscribe: writes(context, subscribe, givenSubscribe, shownSubscribed),
    revise: writes(context, reviseSubscription, givenRevise, shownSubscribed),
    enable: writes(context, enableSubscription, ofSubscription),
    disable: writes(context, disableSubscription, ofSubscription),
    delete: writes(context, deleteSubscription, ofSubscription),
    get: reads(context, readSubscription, ofSubscription, shownIfFound),
    list: lists(context, subscriptionList),
    sourceKey: (type, value) => derivedSourceKey(context.hash, checkedSourceType(type), value),
    record: writes(context, recordOccurrence, givenRecord, shownRecorded),
    occurrence: reads(context, readOccurrence, givenReadOccurrence, shownOccurrence),
    occurrences: lists(context, occurrenceList),
    cancelOccurrence: writes(context, cancelOccurrence, givenCancelOccurrence),
    unstarted: lists(context, unstartedList),
    removeOccurrences: (policy, given) => removeOldOccurrences(context, policy, given),
    run: (given) =>
      runOwnSchedules(context, { [triggerSchedules]: (due) => fireTrigger(context, due) }, given),
  };
}
