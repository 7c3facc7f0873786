import {
  decideAwait,
  type AwaitEnd,
  type AwaitOutcome,
  type AwaitWish,
} from "../../../model/effect/await-event.ts";
import {
  idInToken,
  isGenuine,
  tokenInvalid,
  type AwaitEventId,
} from "../../../model/effect/await-token.ts";
import type { Encoded } from "../../../model/values/encoded.ts";
import { storedError } from "../../../model/values/stored-error.ts";
import type { WaitOptions } from "../../../sql/database.ts";
import {
  announce,
  run,
  storeOperation,
  type StoreOperation,
  type Tx,
} from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { onlyWait, type Call } from "../../method.ts";
import { isHeldLiving } from "../../session-row.ts";
import { awaitedBeside, placeInGroups } from "../groups/place.ts";
import { aggregateOf, checkedPlace, keptSessionOf, type EffectScope } from "../scope.ts";
import { readOutcome, signingSecret, type AwaitContext } from "./context.ts";
import {
  addressOf,
  awaitEventEnded,
  awaitEventNotFound,
  lockedEvents,
  type AwaitAddress,
  type AwaitPlace,
  type AwaitRecord,
} from "./event-row.ts";

/** What a caller is told that ends an await-event. */
export type AwaitReply =
  /** It ended this way, by this call. */
  | { readonly kind: "accepted" }
  /** It had ended this way already: the same call was made before. */
  | { readonly kind: "replayed" }
  /** It had ended before, in this way; undefined when it was revoked. */
  | {
      readonly kind: "late";
      readonly outcome: AwaitOutcome<unknown, Error> | undefined;
    };

/** The outcome of a wish to end an await-event, and the event as it is then. */
interface Settlement {
  readonly kind: "accepted" | "replayed" | "late" | "open";
  readonly event: AwaitRecord;
}

/** @throws HoldfastError `CORRUPT_ROW` */
export function shownReply(context: AwaitContext, { kind, event }: Settlement): AwaitReply {
  return kind === "accepted" || kind === "replayed"
    ? { kind }
    : { kind: "late", outcome: readOutcome(context, event) };
}

/** An answer from outside: its kind, what is stored of it, and what makes an equal one the same. */
interface AwaitAnswer {
  readonly kind: "resolved" | "failed";
  readonly payload: Encoded;
  readonly hash: string;
}

interface ResolveAwaitEvent {
  readonly id: AwaitEventId;
  /** Whether it is genuine is judged by what the database holds. */
  readonly token: string;
  readonly answer: AwaitAnswer;
}

/** @throws HoldfastError `AWAIT_TOKEN_INVALID`, `NOT_SERIALIZABLE`, `VALUE_TOO_LARGE`, `OPTION_INVALID` */
export function givenResolve(
  { codec, encode }: AwaitContext,
  token: string,
  value: unknown,
  wait?: WaitOptions,
): Call<ResolveAwaitEvent> {
  const id = idInToken(token);
  const answer = {
    kind: "resolved",
    payload: encode(value),
    hash: codec.hash("await-value", 1, value),
  } as const;
  return { input: { id, token, answer }, wait: onlyWait(wait) };
}

/** @throws HoldfastError `AWAIT_TOKEN_INVALID`, `OPTION_INVALID` */
export function givenFail(
  { ownCodec }: AwaitContext,
  token: string,
  error: unknown,
  wait?: WaitOptions,
): Call<ResolveAwaitEvent> {
  const id = idInToken(token);
  // Stacks differ between machines; the same failure told again is the same.
  const withoutStack = storedError(error, { stack: false });
  const answer = {
    kind: "failed",
    payload: ownCodec.encode(storedError(error)) as Encoded,
    hash: ownCodec.hash("await-error", 1, withoutStack),
  } as const;
  return { input: { id, token, answer }, wait: onlyWait(wait) };
}

/**
 * Answers an await-event from outside. A token is judged in the same way
 * whether there is something for it or not, and every refusal is the same, so
 * that a caller who guesses does not learn what exists.
 *
 * @throws HoldfastError `AWAIT_TOKEN_INVALID`
 */
export const resolveAwaitEvent: StoreOperation<AwaitContext, ResolveAwaitEvent, Settlement> =
  storeOperation("resolveAwaitEvent", {
    key: (input: ResolveAwaitEvent) => input.id,
    *one(context: AwaitContext, { id, token, answer }) {
      const { bytes } = context.database;
      const secret = yield* signingSecret(context);
      const address = yield* addressOf(id);
      // No row has the key 0, so no token is genuine for it.
      const rowKey = address?.rowKey ?? 0;
      if (secret === undefined || !isGenuine(bytes, secret, rowKey, token)) throw tokenInvalid();
      if (address === undefined || !(yield* isReachable(address))) throw tokenInvalid();
      const locked = yield* lockedTogether(context, address);
      const { event } = locked;
      if (event?.rowKey !== rowKey || event.revokedAt !== null) throw tokenInvalid();
      return yield* settle({ ...locked, event }, answer);
    },
  });

/** Whether its scope has a session that lives, or needs none. That is held before the event is locked. */
function* isReachable({ session }: AwaitAddress): Tx<boolean> {
  return session === 0 || (yield* isHeldLiving(session));
}

/** An await-event with those that a group waits for beside it, as far as their time is over. */
function* lockedTogether(
  context: AwaitContext,
  address: AwaitAddress,
): ReturnType<typeof lockedEvents> {
  const beside = yield* awaitedBeside(address);
  return yield* lockedEvents(context, address, beside);
}

interface EndAwaitEvent extends AwaitPlace {
  readonly end: "cancelled" | "revoked" | "timedOut";
}

/** @throws HoldfastError `EFFECT_SCOPE_INVALID`, `EFFECT_INVALID`, `ID_MALFORMED`, `OPTION_INVALID` */
export function givenCancel(
  _: AwaitContext,
  scope: EffectScope,
  key: string,
  wait?: WaitOptions,
): Call<EndAwaitEvent> {
  const input = {
    ...checkedPlace("await-event", scope, key),
    end: "cancelled",
  } as const;
  return { input, wait: onlyWait(wait) };
}

/** @throws HoldfastError `EFFECT_SCOPE_INVALID`, `EFFECT_INVALID`, `ID_MALFORMED`, `OPTION_INVALID` */
export function givenRevoke(
  _: AwaitContext,
  scope: EffectScope,
  key: string,
  wait?: WaitOptions,
): Call<EndAwaitEvent> {
  const input = {
    ...checkedPlace("await-event", scope, key),
    end: "revoked",
  } as const;
  return { input, wait: onlyWait(wait) };
}

/**
 * Ends an await-event from inside: it is cancelled, revoked, or times out if
 * its time is over. What has ended before keeps its outcome; a token that is
 * revoked does not count from then on even so.
 *
 * @throws HoldfastError `AWAIT_EVENT_NOT_FOUND`, `SESSION_NOT_FOUND` or
 *   `SESSION_DELETED`.
 */
export const endAwaitEvent: StoreOperation<AwaitContext, EndAwaitEvent, Settlement> =
  storeOperation("endAwaitEvent", {
    key: (input: EndAwaitEvent) => aggregateOf(input),
    *one(context: AwaitContext, input) {
      const { scope, key, end } = input;
      const session = yield* keptSessionOf(scope);
      const locked = yield* lockedTogether(context, { session, scope, key });
      const { event } = locked;
      if (event === undefined) throw awaitEventNotFound(input);
      return yield* settle({ ...locked, event }, { kind: end });
    },
  });

/** Await-events that are locked since an instant: one that is to end, and those whose time was over before. */
interface LockedEvents {
  readonly now: number;
  readonly event: AwaitRecord;
  readonly overdue: readonly AwaitRecord[];
}

/** Writes everything before groups look at it, so that they see the order in which it happened. */
function* settle(
  { now, event, overdue }: LockedEvents,
  wish: AwaitWish | AwaitAnswer,
): Tx<Settlement> {
  yield* timeOut(overdue);
  const settlement = yield* settleAlone(event, wish, now);
  const isNew = settlement.event.state !== event.state;
  yield* placeInGroups(isNew ? [event, ...overdue] : overdue);
  return settlement;
}

/** Records that the time of these is over; the caller has locked them. */
export function* timeOut(overdue: readonly AwaitRecord[]): Tx<void> {
  for (const event of overdue) yield* writeEnd(event, "timedOut", event.dueAt ?? 0, undefined);
}

/** Ends one event that is locked; the groups that wait for it are the caller's business. */
export function* settleAlone(
  event: AwaitRecord,
  wish: AwaitWish | AwaitAnswer,
  now: number,
): Tx<Settlement> {
  const settlement = yield* decide(event, wish, now);
  if (wish.kind !== "revoked" || event.revokedAt !== null) return settlement;
  yield* run(sql`
    UPDATE holdfast_await_event SET revoked_at = ${now} WHERE key = ${event.rowKey}`);
  return { ...settlement, event: { ...settlement.event, revokedAt: now } };
}

function* decide(event: AwaitRecord, wish: AwaitWish | AwaitAnswer, now: number): Tx<Settlement> {
  const decision = decideAwait(event, wish, now);
  if (decision.kind !== "settle") return { kind: decision.kind, event };
  const { end, at } = decision;
  const isWished = end === wish.kind;
  const answer = isWished && "payload" in wish ? wish : undefined;
  const after = yield* writeEnd(event, end, at, answer);
  return { kind: isWished ? "accepted" : "late", event: after };
}

function* writeEnd(
  event: AwaitRecord,
  end: AwaitEnd,
  at: number,
  answer: AwaitAnswer | undefined,
): Tx<AwaitRecord> {
  const { payload = null, hash = null } = answer ?? {};
  yield* run(sql`
    UPDATE holdfast_await_event
    SET state = ${end}, settled_at = ${at}, hash = ${hash}, payload = ${payload}
    WHERE key = ${event.rowKey}`);
  yield* announce(awaitEventEnded, event.id);
  return { ...event, state: end, settledAt: at, payload, hash };
}
