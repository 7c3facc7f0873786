import type { Encoded } from "../../model/values/encoded.ts";
import { instantOf } from "../../model/time/clock.ts";
import { isFields } from "../../model/trigger/payload-schema.ts";
import { checkedCount, draftOf, givenFlag } from "../../model/shape.ts";
import {
  subscriptionChanged,
  subscriptionExists,
  subscriptionInvalid,
  subscriptionNotFound,
} from "../../model/trigger/errors.ts";
import {
  decideRevise,
  decideSubscribe,
  scheduleSource,
  subscriptionParts,
  triggerSchedules,
  type SubscriptionPartHashes,
  type TriggerSource,
} from "../../model/trigger/trigger.ts";
import type { WaitOptions } from "../../sql/database.ts";
import { row, storeOperation, type Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { onlyWait, optionsAndWait, type Call } from "../method.ts";
import { pauseSchedule, putSchedule, removeSchedule } from "../schedule/parts.ts";
import type { SessionName } from "../session-name.ts";
import {
  checkedTerms,
  termNames,
  type CheckedTerms,
  type SubscriptionContent,
  type SubscriptionTerms,
} from "./content.ts";
import type { TriggerContext } from "./context.ts";
import {
  knownSubscription,
  lockedRegistrant,
  lockedSubscription,
  ownSource,
  shownSubscription,
  subscriptionColumns,
  subscriptionNamed,
  subscriptionOf,
  type RegistrantRoot,
  type StoredSubscription,
  type Subscription,
  type SubscriptionName,
  type SubscriptionRef,
  type SubscriptionRow,
} from "./subscription-row.ts";

/** A new subscription. */
export interface SubscriptionDraft extends SubscriptionTerms {
  /**
   * Chosen by the caller. Subscribing twice under one key subscribes once. Each registrant has its
   * own keys.
   */
  readonly key: string;
  /** The subscribing session, with which the subscription ends; defaults to the host. */
  readonly registrant?: SessionName | null;
  /**
   * Defaults to true for a new subscription. An existing one is unchanged, and another state is
   * refused: use `enable` and `disable` to change it.
   */
  readonly isEnabled?: boolean;
}

const draftNames = [
  "key",
  "registrant",
  "isEnabled",
  ...termNames,
] as const satisfies readonly (keyof SubscriptionDraft)[];

/** The terms of a subscription, ready to be stored. */
interface NewTerms {
  /** Undefined for a schedule, whose source is the subscription itself. */
  readonly source: TriggerSource | undefined;
  readonly schedule: CheckedTerms["schedule"];
  readonly content: Encoded;
  /** The definition of the target, for filters. */
  readonly definition: string | null;
  readonly parts: SubscriptionPartHashes;
}

/** @throws HoldfastError `SUBSCRIPTION_INVALID`, `OPTION_INVALID`, `NAME_INVALID` … */
function newTerms<T extends SubscriptionTerms>(
  context: TriggerContext,
  given: T,
  names: readonly (keyof T & string)[],
): NewTerms {
  if (!isFields(given))
    throw subscriptionInvalid("$", "is not an object with a source and a target.");
  draftOf<T>("the subscription", given, names);
  const now = context.clock.now();
  const { content, schedule } = checkedTerms(context, given, now);
  const { source, target } = content;
  const { stored, read } = context.codec.encodeOnce(content);
  return {
    definition: target.definition,
    source: "schedule" in source ? undefined : source,
    schedule,
    content: stored as Encoded,
    parts: subscriptionParts(context.hash, { ...(read as SubscriptionContent) }),
  };
}

interface Subscribe {
  readonly name: SubscriptionRef;
  readonly terms: NewTerms;
  /** Undefined when it was not given: true for a new subscription. */
  readonly isEnabled: boolean | undefined;
}

interface SubscribeOutcome {
  readonly subscription: StoredSubscription;
  /** True when the same subscription existed already. */
  readonly existed: boolean;
}

export function givenSubscribe(
  context: TriggerContext,
  draft: SubscriptionDraft,
  wait?: WaitOptions,
): Call<Subscribe> {
  const terms = newTerms(context, draft, draftNames);
  const { key, registrant = null, isEnabled } = draft;
  return {
    input: {
      name: subscriptionNamed({ key, registrant }),
      terms,
      isEnabled: givenFlag("isEnabled", isEnabled),
    },
    wait: onlyWait(wait),
  };
}

/**
 * Subscribes to a source. Locks the session, then the subscription, then its schedule, as every
 * change of one does.
 *
 * @throws HoldfastError `SUBSCRIPTION_EXISTS` naming the part that differs, `SUBSCRIPTION_INVALID`
 *   for a source with too many subscriptions, `SESSION_NOT_FOUND`, `SESSION_DELETED`
 */
export const subscribe = storeOperation("subscribe", {
  key: (input) => input.name.key,
  *one(context: TriggerContext, input: Subscribe): Tx<SubscribeOutcome> {
    const { name, terms } = input;
    const registrant = yield* lockedRegistrant(name.registrant);
    const source = terms.source ?? ownSource(registrant.key, name.key);
    const found =
      (yield* lockedSubscription(registrant, name)) ??
      (yield* insertSubscription(context, registrant, source, name)) ??
      // Another call was faster, and has committed by now.
      (yield* lockedSubscription(registrant, name));
    if (found === undefined) throw subscriptionNotFound(name.key);
    const known = found.revision === 0 ? undefined : knownSubscription(found);
    const decision = decideSubscribe(known, terms.parts, input.isEnabled);
    if (decision.kind === "conflict") throw subscriptionExists(name.key, decision.part);
    if (decision.kind === "existing") return { subscription: subscriptionOf(found), existed: true };
    const { isEnabled = true } = input;
    if (isEnabled) yield* assertRoom(source);
    const { revision } = decision;
    const at = instantOf(() => context.clock.now());
    const state = { revision, isEnabled, createdAt: at, at };
    const written = yield* writeTerms(found.key, source, terms, state);
    yield* putScheduleOf(context, written, terms);
    return { subscription: subscriptionOf(written), existed: false };
  },
});

/** @throws HoldfastError `CORRUPT_ROW` for an unreadable existing subscription. */
export function shownSubscribed<O extends { readonly subscription: StoredSubscription }>(
  context: TriggerContext,
  outcome: O,
): Omit<O, "subscription"> & { readonly subscription: Subscription } {
  const subscription = shownSubscription(context, outcome.subscription);
  return { ...outcome, subscription };
}

/** Inserts an empty row of revision 0; undefined when one exists already. */
function* insertSubscription(
  { clock }: TriggerContext,
  { key: session, id, generation }: RegistrantRoot,
  source: TriggerSource,
  name: SubscriptionRef,
): Tx<SubscriptionRow | undefined> {
  const at = instantOf(() => clock.now());
  return yield* row<SubscriptionRow>(sql`
    INSERT INTO holdfast_trigger_subscription
      (session, session_id, generation, name, revision, parts, is_enabled, source_type, source_key, created_at, changed_at)
    VALUES (${session}, ${id}, ${generation}, ${name.key}, 0, '{}', 0, ${source.type}, ${source.key}, ${at}, ${at})
    ON CONFLICT (session, name) DO NOTHING
    RETURNING ${subscriptionColumns}`);
}

function* writeTerms(
  key: number,
  source: TriggerSource,
  { content, definition, parts }: NewTerms,
  state: {
    readonly revision: number;
    readonly isEnabled: boolean;
    readonly createdAt: number;
    readonly at: number;
  },
): Tx<SubscriptionRow> {
  const written = yield* row<SubscriptionRow>(sql`
    UPDATE holdfast_trigger_subscription SET revision = ${state.revision}, is_enabled = ${state.isEnabled ? 1 : 0},
      source_type = ${source.type}, source_key = ${source.key}, content = ${content}, definition = ${definition},
      parts = ${JSON.stringify(parts)}, created_at = ${state.createdAt}, changed_at = ${state.at}, deleted_at = NULL
    WHERE key = ${key} RETURNING ${subscriptionColumns}`);
  if (written === undefined) throw new Error("The row was just locked.");
  return written;
}

/**
 * Puts the schedule that a subscription needs, if any. It is paused for a disabled subscription.
 */
function* putScheduleOf(
  context: TriggerContext,
  written: SubscriptionRow,
  { schedule }: NewTerms,
): Tx<void> {
  if (schedule === null) return;
  const name = { kind: triggerSchedules, name: written.source_key };
  yield* putSchedule(context)({ ...schedule, ...name });
  if (written.is_enabled === 0) yield* pauseSchedule(context)(name);
}

export interface ReviseSubscriptionOptions extends WaitOptions {
  /** Refuses when the subscription has changed since this revision. */
  readonly expectedRevision?: number;
}

interface Revise {
  readonly name: SubscriptionRef;
  readonly terms: NewTerms;
  /** Refused when the subscription has another revision. */
  readonly expectedRevision: number | undefined;
}

interface ReviseOutcome {
  readonly subscription: StoredSubscription;
  /** False when the subscription has these terms already. */
  readonly isChanged: boolean;
}

export function givenRevise(
  context: TriggerContext,
  name: SubscriptionName,
  terms: SubscriptionTerms,
  options?: ReviseSubscriptionOptions,
): Call<Revise> {
  const {
    options: { expectedRevision },
    wait,
  } = optionsAndWait(options, ["expectedRevision"]);
  return {
    input: {
      name: subscriptionNamed(name),
      terms: newTerms(context, terms, termNames),
      expectedRevision:
        expectedRevision === undefined
          ? undefined
          : checkedCount("expectedRevision", expectedRevision),
    },
    wait,
  };
}

/**
 * Replaces the terms of a subscription, and keeps its enabled state. A schedule with unchanged
 * terms keeps its next instant.
 *
 * @throws HoldfastError `SUBSCRIPTION_NOT_FOUND`, `SUBSCRIPTION_CHANGED`, `SUBSCRIPTION_INVALID`,
 *   `SESSION_NOT_FOUND`, `SESSION_DELETED`
 */
export const reviseSubscription = storeOperation("reviseSubscription", {
  key: (input) => input.name.key,
  *one(context: TriggerContext, { name, terms, expectedRevision }: Revise): Tx<ReviseOutcome> {
    const registrant = yield* lockedRegistrant(name.registrant);
    const found = yield* lockedSubscription(registrant, name);
    const decision = decideRevise(found && knownSubscription(found), terms.parts, expectedRevision);
    if (found === undefined || decision.kind === "missing") throw subscriptionNotFound(name.key);
    if (decision.kind === "overtaken")
      throw subscriptionChanged(name.key, expectedRevision ?? 0, decision.actual);
    if (decision.kind === "unchanged")
      return { subscription: subscriptionOf(found), isChanged: false };
    const source = terms.source ?? ownSource(registrant.key, name.key);
    const isEnabled = found.is_enabled === 1;
    if (isEnabled) yield* assertRoom(source, found);
    const { revision } = decision;
    const written = yield* writeTerms(found.key, source, terms, {
      revision,
      isEnabled,
      createdAt: found.created_at,
      at: instantOf(() => context.clock.now()),
    });
    if (found.source_type === scheduleSource && terms.schedule === null)
      yield* removeSchedule(context)({
        kind: triggerSchedules,
        name: found.source_key,
      });
    yield* putScheduleOf(context, written, terms);
    return { subscription: subscriptionOf(written), isChanged: true };
  },
});

/**
 * The largest number of processes that one occurrence starts. Its transaction blocks the other
 * writers of SQLite: 1,000 took 0.35 s in memory and 3.4 s on Postgres. Concurrent calls may exceed
 * it slightly.
 */
const subscriptionsPerSourceMax = 64;

/** @throws HoldfastError `SUBSCRIPTION_INVALID` for a source with too many subscriptions */
export function* assertRoom({ type, key }: TriggerSource, before?: SubscriptionRow): Tx<void> {
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
