import { decideAwait } from "../../../model/await-event.ts";
import type { AwaitEnd, AwaitWish } from "../../../model/await-event.ts";
import type { Now } from "../../../model/clock.ts";
import { tokenInvalid } from "../../../model/await-token.ts";
import type { AwaitEventId } from "../../../model/await-token.ts";
import type { Encoded } from "../../../model/encoded.ts";
import { announce, run, plainOperation } from "../../../sql/operation.ts";
import type { Operation, Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { sharedKeyOf } from "./session-key.ts";
import { awaitedBeside, placeInGroups } from "../groups/place.ts";
import { isHeldLiving } from "../../session/session-at.ts";
import { awaitEventNotFound } from "./errors.ts";
import { addressOf, aggregateOf, lockedEvents } from "./event-row.ts";
import type { AwaitAddress, AwaitPlace, AwaitRecord } from "./event-row.ts";
import { signingSecret } from "./secret.ts";
import { awaitEventEnded } from "./topics.ts";

/** What came of a wish to end an await-event, and the event as it is then. */
export interface Settlement {
  readonly kind: "accepted" | "replayed" | "late" | "open";
  readonly event: AwaitRecord;
}

/** An answer from outside: its kind, what is stored of it, and what makes an equal one the same. */
export interface AwaitAnswer {
  readonly kind: "resolved" | "failed";
  readonly payload: Encoded;
  readonly hash: string;
}

export interface ResolveAwaitEvent {
  readonly id: AwaitEventId;
  /** Whether the token that was shown is signed with this secret, for this row. */
  readonly isGenuine: (secret: Encoded, rowKey: number) => boolean;
  readonly answer: AwaitAnswer;
  readonly now: Now;
}

/**
 * Answers an await-event from outside. A token is judged in the same way
 * whether there is something for it or not, and every refusal is the same, so
 * that nobody learns what exists.
 *
 * @throws HoldfastError `AWAIT_TOKEN_INVALID`
 */
export const resolveAwaitEvent: Operation<ResolveAwaitEvent, Settlement> =
  plainOperation("resolveAwaitEvent", {
    key: (input: ResolveAwaitEvent) => input.id,
    *one({ id, isGenuine, answer, now }) {
      const secret = yield* signingSecret();
      const address = yield* addressOf(id);
      // No row has the key 0, so no token is genuine for it.
      const rowKey = address?.rowKey ?? 0;
      if (secret === undefined || !isGenuine(secret, rowKey))
        throw tokenInvalid();
      if (address === undefined || !(yield* isReachable(address)))
        throw tokenInvalid();
      const locked = yield* lockedTogether(address, now);
      const { event } = locked;
      if (event?.rowKey !== rowKey || event.revokedAt !== null)
        throw tokenInvalid();
      return yield* settled({ ...locked, event }, answer);
    },
  });

/** Whether its scope has a session that lives, or needs none. That is held before the event is locked. */
function* isReachable({ session }: AwaitAddress): Tx<boolean> {
  return session === 0 || (yield* isHeldLiving(session));
}

/** An await-event with those that a group waits for beside it, as far as their time is over. */
function* lockedTogether(
  address: AwaitAddress,
  now: Now,
): ReturnType<typeof lockedEvents> {
  return yield* lockedEvents(address, yield* awaitedBeside(address), now);
}

export interface EndAwaitEvent extends AwaitPlace {
  readonly end: "cancelled" | "revoked" | "timedOut";
  readonly now: Now;
}

/**
 * Ends an await-event from inside: it is cancelled, revoked, or times out if
 * its time is over. What has ended before keeps its outcome; a token that is
 * revoked does not count from then on even so.
 *
 * @throws HoldfastError `AWAIT_EVENT_NOT_FOUND`, `SESSION_NOT_FOUND` or
 *   `SESSION_DELETED`.
 */
export const endAwaitEvent: Operation<EndAwaitEvent, Settlement> =
  plainOperation("endAwaitEvent", {
    key: (input: EndAwaitEvent) => aggregateOf(input),
    *one(input) {
      const { scope, key, end, now } = input;
      const session = yield* sharedKeyOf(scope);
      const locked = yield* lockedTogether({ session, scope, key }, now);
      const { event } = locked;
      if (event === undefined) throw awaitEventNotFound(input);
      return yield* settled({ ...locked, event }, { kind: end });
    },
  });

/** Await-events that are locked since an instant: one that somebody wants to end, and those whose time was over before. */
interface LockedEvents {
  readonly now: number;
  readonly event: AwaitRecord;
  readonly overdue: readonly AwaitRecord[];
}

/** Writes everything before groups look at it, so that they see the order in which it happened. */
function* settled(
  { now, event, overdue }: LockedEvents,
  wish: AwaitWish | AwaitAnswer,
): Tx<Settlement> {
  yield* timeOut(overdue);
  const settlement = yield* settledAlone(event, wish, now);
  const isNew = settlement.event.state !== event.state;
  yield* placeInGroups(isNew ? [event, ...overdue] : overdue);
  return settlement;
}

/** Records that the time of these is over, for who has locked them. */
export function* timeOut(overdue: readonly AwaitRecord[]): Tx<void> {
  for (const event of overdue)
    yield* writeEnd(event, "timedOut", event.dueAt ?? 0, undefined);
}

/** Ends one event that is locked; the groups that wait for it are the caller's business. */
export function* settledAlone(
  event: AwaitRecord,
  wish: AwaitWish | AwaitAnswer,
  now: number,
): Tx<Settlement> {
  const settlement = yield* decided(event, wish, now);
  if (wish.kind !== "revoked" || event.revokedAt !== null) return settlement;
  yield* run(sql`
    UPDATE holdfast_await_event SET revoked_at = ${now} WHERE key = ${event.rowKey}`);
  return { ...settlement, event: { ...settlement.event, revokedAt: now } };
}

function* decided(
  event: AwaitRecord,
  wish: AwaitWish | AwaitAnswer,
  now: number,
): Tx<Settlement> {
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
