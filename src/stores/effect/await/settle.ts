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
import { storedError, withoutStacks } from "../../../model/values/stored-error.ts";
import type { WaitOptions } from "../../../sql/database.ts";
import { announce, run, storeOperation, type Tx } from "../../../sql/operation.ts";
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

/** The reply to a caller that ends an await-event. */
export type AwaitReply =
  /** This call ended the event. */
  | { readonly kind: "accepted" }
  /** The same call was made before and had already ended the event this way. */
  | { readonly kind: "replayed" }
  /** The event had already ended with this outcome; undefined when it was revoked. */
  | {
      readonly kind: "late";
      readonly outcome: AwaitOutcome<unknown, Error> | undefined;
    };

/** The result of a request to end an await-event, with the event after it. */
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

/**
 * An answer from outside: its kind, its stored payload, and the hash by which an equal answer is
 * recognized.
 */
interface AwaitAnswer {
  readonly kind: "resolved" | "failed";
  readonly payload: Encoded;
  readonly hash: string;
}

interface ResolveAwaitEvent {
  readonly id: AwaitEventId;
  /** Checked against the secret in the database. */
  readonly token: string;
  readonly answer: AwaitAnswer;
}

/** @throws HoldfastError `AWAIT_TOKEN_INVALID`, `NOT_SERIALIZABLE`, `VALUE_TOO_LARGE`, `OPTION_INVALID` */
export function givenResolve(
  { codec }: AwaitContext,
  token: string,
  value: unknown,
  wait?: WaitOptions,
): Call<ResolveAwaitEvent> {
  const id = idInToken(token);
  const { stored, read } = codec.encodeOnce(value);
  const answer = {
    kind: "resolved",
    payload: stored as Encoded,
    hash: codec.hash("await-value", 1, read),
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
  const stored = storedError(error);
  const answer = {
    kind: "failed",
    payload: ownCodec.encode(stored) as Encoded,
    // Stacks differ between machines, so they do not make a repeated failure a different one.
    hash: ownCodec.hash("await-error", 1, withoutStacks(stored)),
  } as const;
  return { input: { id, token, answer }, wait: onlyWait(wait) };
}

/**
 * Answers an await-event from outside. A token is checked in the same way for existing and missing
 * events, and every refusal is the same. A caller who guesses tokens therefore does not learn which
 * events exist.
 *
 * @throws HoldfastError `AWAIT_TOKEN_INVALID`
 */
export const resolveAwaitEvent = storeOperation("resolveAwaitEvent", {
  key: (input) => input.id,
  *one(context: AwaitContext, { id, token, answer }: ResolveAwaitEvent): Tx<Settlement> {
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

/**
 * True if the scope has no session, or its session is not deleted. The session is held before the
 * event is locked.
 */
function* isReachable({ session }: AwaitAddress): Tx<boolean> {
  return session === 0 || (yield* isHeldLiving(session));
}

/** Locks an await-event together with the overdue ones that a group awaits beside it. */
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
 * Ends an await-event from inside: cancels or revokes it, or records that it timed out. An event
 * that has already ended keeps its outcome. A revoked token still stops working then.
 *
 * @throws HoldfastError `AWAIT_EVENT_NOT_FOUND`, `SESSION_NOT_FOUND` or
 *   `SESSION_DELETED`.
 */
export const endAwaitEvent = storeOperation("endAwaitEvent", {
  key: (input) => aggregateOf(input),
  *one(context: AwaitContext, input: EndAwaitEvent): Tx<Settlement> {
    const { scope, key, end } = input;
    const session = yield* keptSessionOf(scope);
    const locked = yield* lockedTogether(context, { session, scope, key });
    const { event } = locked;
    if (event === undefined) throw awaitEventNotFound(input);
    return yield* settle({ ...locked, event }, { kind: end });
  },
});

/**
 * Await-events that are locked at an instant: the one to end, and those that were overdue before.
 */
interface LockedEvents {
  readonly now: number;
  readonly event: AwaitRecord;
  readonly overdue: readonly AwaitRecord[];
}

/** Writes all ends before groups read them, so that groups see the order in which they happened. */
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

/** Records that these events timed out. The caller has locked them. */
export function* timeOut(overdue: readonly AwaitRecord[]): Tx<void> {
  for (const event of overdue) yield* writeEnd(event, "timedOut", event.dueAt ?? 0, undefined);
}

/** Ends one locked event. The caller updates the groups that wait for it. */
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
