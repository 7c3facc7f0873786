import { instantOf } from "../../model/clock.ts";
import type { Now } from "../../model/clock.ts";
import type { Encoded } from "../../model/encoded.ts";
import {
  subscriptionChanged,
  subscriptionExists,
  subscriptionNotFound,
} from "../../model/trigger-errors.ts";
import {
  decideRevise,
  decideSubscribe,
  scheduleSource,
  triggerSchedules,
} from "../../model/trigger.ts";
import type {
  SubscriptionPartHashes,
  TriggerSource,
} from "../../model/trigger.ts";
import { row, plainOperation } from "../../sql/operation.ts";
import type { Operation, Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { pauseSchedule, putSchedule, removeSchedule } from "../schedule/put.ts";
import type { CheckedTerms, SubscriptionRef } from "./checks.ts";
import { assertRoom } from "./room.ts";
import {
  knownSubscription,
  lockedRegistrant,
  lockedSubscription,
  ownSource,
  subscriptionColumns,
  subscriptionOf,
} from "./subscription-row.ts";
import type {
  RegistrantRoot,
  Subscription,
  SubscriptionRow,
} from "./subscription-row.ts";

/** What a subscription says, ready to be kept. */
export interface NewTerms {
  /** Undefined for a schedule, whose source is the subscription itself. */
  readonly source: TriggerSource | undefined;
  readonly schedule: CheckedTerms["schedule"];
  readonly content: Encoded;
  /** Of the target, for filters. */
  readonly definition: string | null;
  readonly parts: SubscriptionPartHashes;
}

export interface Subscribe {
  readonly name: SubscriptionRef;
  readonly terms: NewTerms;
  /** Undefined when it was not told: true for a new one. */
  readonly isEnabled: boolean | undefined;
  readonly now: Now;
}

export interface SubscribeOutcome<Content = Encoded> {
  readonly subscription: Subscription<Content>;
  /** True when the same was said before. */
  readonly existed: boolean;
}

/**
 * Subscribes to a source. Locks the session, then the subscription, then its
 * schedule, as everything does that changes one.
 *
 * @throws HoldfastError `SUBSCRIPTION_EXISTS` naming the part that differs,
 *   `SUBSCRIPTION_INVALID` when too many listen to the source,
 *   `SESSION_NOT_FOUND`, `SESSION_DELETED`
 */
export const subscribe: Operation<Subscribe, SubscribeOutcome> = plainOperation(
  "subscribe",
  {
    key: (input: Subscribe) => input.name.key,
    *one(input) {
      const { name, terms, now } = input;
      const registrant = yield* lockedRegistrant(name.registrant);
      const source = terms.source ?? ownSource(registrant.key, name.key);
      const found =
        (yield* lockedSubscription(registrant, name)) ??
        (yield* inserted(registrant, source, input)) ??
        // Somebody else was faster, and has committed by now.
        (yield* lockedSubscription(registrant, name));
      if (found === undefined) throw subscriptionNotFound(name.key);
      const known = found.revision === 0 ? undefined : knownSubscription(found);
      const decision = decideSubscribe(known, terms.parts, input.isEnabled);
      if (decision.kind === "conflict")
        throw subscriptionExists(name.key, decision.part);
      if (decision.kind === "existing")
        return { subscription: subscriptionOf(found), existed: true };
      const { isEnabled = true } = input;
      if (isEnabled) yield* assertRoom(source);
      const { revision } = decision;
      const at = instantOf(now);
      const state = { revision, isEnabled, createdAt: at, at };
      const written = yield* writeTerms(found.key, source, terms, state);
      yield* scheduleFor(written, terms, now);
      return { subscription: subscriptionOf(written), existed: false };
    },
  },
);

/** A row to be written to, of revision 0; undefined when there is one already. */
function* inserted(
  { key: session, id, generation }: RegistrantRoot,
  source: TriggerSource,
  { name, now }: Subscribe,
): Tx<SubscriptionRow | undefined> {
  const at = instantOf(now);
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

/** Puts the schedule that a subscription needs, if it is to run now. */
function* scheduleFor(
  written: SubscriptionRow,
  { schedule }: NewTerms,
  now: Now,
): Tx<void> {
  if (schedule === null) return;
  const name = { kind: triggerSchedules, name: written.source_key };
  yield* putSchedule({ ...schedule, ...name, now });
  if (written.is_enabled === 0) yield* pauseSchedule({ ...name, now });
}

export interface Revise {
  readonly name: SubscriptionRef;
  readonly terms: NewTerms;
  /** Refused when it has another one. */
  readonly expectedRevision: number | undefined;
  readonly now: Now;
}

export interface ReviseOutcome<Content = Encoded> {
  readonly subscription: Subscription<Content>;
  readonly isChanged: boolean;
}

/**
 * Replaces what a subscription says; whether it is enabled stays as it is. A
 * schedule with the terms it had goes on.
 *
 * @throws HoldfastError `SUBSCRIPTION_NOT_FOUND`, `SUBSCRIPTION_CHANGED`,
 *   `SUBSCRIPTION_INVALID`, `SESSION_NOT_FOUND`, `SESSION_DELETED`
 */
export const reviseSubscription: Operation<Revise, ReviseOutcome> =
  plainOperation("reviseSubscription", {
    key: (input: Revise) => input.name.key,
    *one({ name, terms, expectedRevision, now }) {
      const registrant = yield* lockedRegistrant(name.registrant);
      const found = yield* lockedSubscription(registrant, name);
      const decision = decideRevise(
        found && knownSubscription(found),
        terms.parts,
        expectedRevision,
      );
      if (found === undefined || decision.kind === "missing")
        throw subscriptionNotFound(name.key);
      if (decision.kind === "overtaken")
        throw subscriptionChanged(
          name.key,
          expectedRevision ?? 0,
          decision.actual,
        );
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
        at: instantOf(now),
      });
      if (found.source_type === scheduleSource && terms.schedule === null)
        yield* removeSchedule({
          kind: triggerSchedules,
          name: found.source_key,
        });
      yield* scheduleFor(written, terms, now);
      return { subscription: subscriptionOf(written), isChanged: true };
    },
  });
