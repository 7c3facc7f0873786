import type { Encoded } from "../../model/encoded.ts";
import { HoldfastError } from "../../model/errors.ts";
import { derivedSourceKey, subscriptionParts } from "../../model/trigger.ts";
import {
  checkedCount,
  checkedFilterText,
  optionsOf,
} from "../../model/shape.ts";
import type { WaitOptions } from "../../sql/database.ts";
import { sift } from "../damage.ts";
import { cursorInvalid, cursorPlace, cursorText } from "../cursor.ts";
import { sessionNamed } from "../session/session-name.ts";
import type { SessionName } from "../session/session-name.ts";
import { checkedLimit, pageNames } from "../paging.ts";
import type { Page, PageOptions } from "../list.ts";
import {
  checkedSourceType,
  checkedSubscription,
  subscriptionNamed,
} from "./checks.ts";
import type { SubscriptionName } from "./checks.ts";
import type { SubscriptionContent, SubscriptionTerms } from "./content.ts";
import type { TriggerSurroundings } from "./context.ts";
import { listSubscriptions, readSubscription } from "./read.ts";
import type { ListSubscriptions, SubscriptionPlace } from "./read.ts";
import { reviseSubscription, subscribe } from "./subscribe.ts";
import type { NewTerms, ReviseOutcome, SubscribeOutcome } from "./subscribe.ts";
import {
  deleteSubscription,
  disableSubscription,
  enableSubscription,
} from "./switch.ts";
import { contentOf, subscriptionTable } from "./subscription-row.ts";
import type { Subscription } from "./subscription-row.ts";

/** A subscription to be made. */
export interface SubscriptionDraft extends SubscriptionTerms {
  /** Chosen by the caller, so that subscribing twice is subscribing once. Each registrant has keys of its own. */
  readonly key: string;
  /** The session that subscribes, with which the subscription ends; the host unless told. */
  readonly registrant?: SessionName | null;
  /**
   * True unless told, for one that is made. One that is there stays as it is:
   * refused when told otherwise; `enable` and `disable` change it.
   */
  readonly isEnabled?: boolean;
}

export interface ReviseSubscriptionOptions extends WaitOptions {
  /** Refuse when somebody has changed it since this revision. */
  readonly expectedRevision?: number;
}

export interface ListSubscriptionsOptions extends PageOptions {
  /** Those of a session, or with null those of the host. */
  readonly registrant?: SessionName | null;
  readonly sourceType?: string;
  readonly sourceKey?: string;
  readonly isEnabled?: boolean;
  /** Those whose target has this definition. */
  readonly definition?: string;
}

/** Who wants which processes started, and when. */
export interface Subscriptions {
  /**
   * Subscribes to a source, or to a schedule of its own, or finds the same
   * subscription that was made before.
   * @throws HoldfastError `SUBSCRIPTION_EXISTS`, `SUBSCRIPTION_INVALID`, `CRON_INVALID`, `TIME_ZONE_INVALID`, `INTERVAL_INVALID`, `SESSION_NOT_FOUND`, `SESSION_DELETED`
   * @example await triggers.subscribe({ key: "daily", registrant: "chat-7", source: { cron: "0 9 * * *" }, target: { kind: "report" } });
   */
  subscribe(
    draft: SubscriptionDraft,
    wait?: WaitOptions,
  ): Promise<SubscribeOutcome<SubscriptionContent>>;
  /**
   * Replaces all that a subscription says.
   * @throws HoldfastError `SUBSCRIPTION_NOT_FOUND`, `SUBSCRIPTION_CHANGED`, `SUBSCRIPTION_INVALID` …
   */
  revise(
    name: SubscriptionName,
    terms: SubscriptionTerms,
    options?: ReviseSubscriptionOptions,
  ): Promise<ReviseOutcome<SubscriptionContent>>;
  /** True if it was disabled. */
  enable(name: SubscriptionName, wait?: WaitOptions): Promise<boolean>;
  /** Keeps it, and what it started; true only if it was enabled. */
  disable(name: SubscriptionName, wait?: WaitOptions): Promise<boolean>;
  /** True when there was one. What it started goes on. */
  delete(name: SubscriptionName, wait?: WaitOptions): Promise<boolean>;
  /** @throws HoldfastError `CORRUPT_ROW`, `SESSION_NOT_FOUND`, `SESSION_DELETED` */
  get(
    name: SubscriptionName,
    wait?: WaitOptions,
  ): Promise<Subscription | undefined>;
  /** A page of subscriptions in the order of registrant and key. What cannot be read is named. */
  list(options?: ListSubscriptionsOptions): Promise<Page<Subscription>>;
  /** The key of a source that is known by its value: the same for equal values. */
  sourceKey(type: string, value: unknown): string;
}

export function subscriptions(around: TriggerSurroundings): Subscriptions {
  const { database, clock, codec } = around;
  const now = (): number => clock.now();
  const switched = (name: SubscriptionName) => ({
    name: subscriptionNamed(name),
    now,
  });
  return {
    async subscribe(draft, wait) {
      const terms = newTerms(around, draft, now());
      const { key, registrant = null, isEnabled } = draft;
      const input = {
        name: subscriptionNamed({ key, registrant }),
        terms,
        isEnabled: optionalFlag("isEnabled", isEnabled),
        now,
      };
      const { subscription, existed } = await database.write(
        subscribe,
        input,
        wait,
      );
      return { subscription: readable(around, subscription), existed };
    },
    async revise(name, given, options) {
      const { expectedRevision, ...wait } = optionsOf(options);
      const input = {
        name: subscriptionNamed(name),
        terms: newTerms(around, given, now()),
        expectedRevision:
          expectedRevision === undefined
            ? undefined
            : checkedCount("expectedRevision", expectedRevision),
        now,
      };
      const { subscription, isChanged } = await database.write(
        reviseSubscription,
        input,
        wait,
      );
      return { subscription: readable(around, subscription), isChanged };
    },
    async enable(name, wait) {
      return database.write(enableSubscription, switched(name), wait);
    },
    async disable(name, wait) {
      return database.write(disableSubscription, switched(name), wait);
    },
    async delete(name, wait) {
      return database.write(deleteSubscription, switched(name), wait);
    },
    async get(name, wait) {
      const ref = subscriptionNamed(name);
      const found = await database.read(readSubscription, ref, wait);
      return found && readable(around, found);
    },
    list: (options) => page(around, options),
    sourceKey: (type, value) =>
      derivedSourceKey(codec.hash, checkedSourceType(type), value),
  };
}

async function page(
  around: TriggerSurroundings,
  given: ListSubscriptionsOptions | undefined,
): Promise<Page<Subscription>> {
  const options = optionsOf(given, [
    ...pageNames,
    "registrant",
    "sourceType",
    "sourceKey",
    "isEnabled",
    "definition",
  ]);
  const { signal, timeout } = options;
  const { items, damaged, next } = await around.database.read(
    listSubscriptions,
    listed(options),
    { signal, timeout },
  );
  const read = sift(
    subscriptionTable,
    items,
    ({ key }) => key,
    (each) => readable(around, each),
  );
  return {
    items: read.items,
    damaged: [...damaged, ...read.damaged],
    next: next && cursorText(filterOf(options), [next.session, next.name]),
  };
}

function readable(
  { codec }: TriggerSurroundings,
  subscription: Subscription<Encoded>,
): Subscription {
  const { key, content } = subscription;
  return { ...subscription, content: contentOf(codec, key, content) };
}

function newTerms(
  { codec }: TriggerSurroundings,
  given: SubscriptionTerms,
  at: number,
): NewTerms {
  const { content, schedule } = checkedSubscription(codec, given, at);
  const { source, target } = content;
  return {
    definition: target.definition,
    source: "schedule" in source ? undefined : source,
    schedule,
    content: codec.encode(content),
    parts: subscriptionParts(codec.hash, { ...content }),
  };
}

function listed(options: ListSubscriptionsOptions): ListSubscriptions {
  const { registrant, sourceType, sourceKey, isEnabled, after } = options;
  const { limit = 100 } = options;
  return {
    registrant:
      registrant === undefined || registrant === null
        ? registrant
        : sessionNamed(registrant),
    sourceType: optionalText("sourceType", sourceType),
    sourceKey: optionalText("sourceKey", sourceKey),
    isEnabled: optionalFlag("isEnabled", isEnabled),
    definition: optionalText("definition", options.definition),
    after: after === undefined ? undefined : placeOf(filterOf(options), after),
    limit: checkedLimit(limit),
  };
}

function optionalText(
  option: string,
  text: string | undefined,
): string | undefined {
  return text === undefined ? undefined : checkedFilterText(option, text);
}

/** What a cursor belongs to. */
function filterOf({
  registrant,
  sourceType,
  sourceKey,
  isEnabled,
  definition,
}: ListSubscriptionsOptions): string {
  return JSON.stringify([
    "subscriptions",
    registrant === undefined ? "all" : registrant,
    sourceType,
    sourceKey,
    isEnabled,
    definition,
  ]);
}

function placeOf(filter: string, text: string): SubscriptionPlace {
  const [session, name] = cursorPlace(filter, text);
  if (!Number.isSafeInteger(session) || typeof name !== "string")
    throw cursorInvalid("malformed");
  return { session: session as number, name };
}

function optionalFlag(
  option: string,
  given: boolean | undefined,
): boolean | undefined {
  if (given === undefined || typeof given === "boolean") return given;
  throw new HoldfastError(
    "OPTION_INVALID",
    `Option ${option} is true or false; got ${typeof given}.`,
    { option },
  );
}
