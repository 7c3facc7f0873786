import { awaitEventId, awaitToken, type AwaitEventId } from "../../../model/effect/await-token.ts";
import { instantOf } from "../../../model/time/clock.ts";
import { durationMs, type Duration } from "../../../model/time/durations.ts";
import { expiryAt } from "../../../model/lease.ts";
import type { WaitOptions } from "../../../sql/database.ts";
import { row, storeOperation, type Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { optionsAndWait, type Call } from "../../method.ts";
import { aggregateOf, checkedPlace, keptSessionOf, type EffectScope } from "../scope.ts";
import { ensureSecret, type AwaitContext } from "./context.ts";
import { awaitEventNotFound, awaitEventRevoked, eventAt, type AwaitPlace } from "./event-row.ts";

export interface OpenAwaitEventOptions extends WaitOptions {
  /** The time limit for an answer, counted from the first call; defaults to forever. */
  readonly answerWithin?: Duration;
}

/** An await-event that can be answered. */
export interface OpenedAwaitEvent {
  readonly id: AwaitEventId;
  /**
   * The token for those who may answer. Opening the event again returns the same token. It is never
   * listed.
   */
  readonly token: string;
  /** The time at which it times out; null for never. */
  readonly dueAt: number | null;
  /** True when the event already existed; it may then have been answered. */
  readonly existed: boolean;
}

interface OpenAwaitEvent extends AwaitPlace {
  /** The time limit for an answer; null for forever. An open event keeps its due time. */
  readonly answerWithinMs: number | null;
}

/** @throws HoldfastError `EFFECT_SCOPE_INVALID`, `EFFECT_INVALID`, `ID_MALFORMED`, `OPTION_INVALID`, `DURATION_INVALID` */
export function givenOpen(
  _: AwaitContext,
  scope: EffectScope,
  key: string,
  given?: OpenAwaitEventOptions,
): Call<OpenAwaitEvent> {
  const { options, wait } = optionsAndWait(given, ["answerWithin"]);
  const { answerWithin } = options;
  const input = {
    ...checkedPlace("await-event", scope, key),
    answerWithinMs: answerWithin === undefined ? null : durationMs(answerWithin, "answerWithin"),
  };
  return { input, wait };
}

/**
 * Opens an await-event, or finds the existing one of the same scope and key. An existing one keeps
 * its id, its due time and so its token, even after it has ended.
 *
 * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`, or
 *   `AWAIT_EVENT_REVOKED`: a revoked await-event is never opened again.
 */
export const openAwaitEvent = storeOperation("openAwaitEvent", {
  snapshotSafe: true,
  key: (input) => aggregateOf(input),
  *one(context: AwaitContext, input: OpenAwaitEvent): Tx<OpenedAwaitEvent> {
    const { database, clock } = context;
    const { scope, key, answerWithinMs } = input;
    const session = yield* keptSessionOf(scope);
    const secret = yield* ensureSecret(context);
    const identity = { session, scopeKind: scope.kind, scope: scope.id, key };
    const id = awaitEventId(database.sha256Hex, identity);
    const now = instantOf(() => clock.now());
    const dueAt = answerWithinMs === null ? null : expiryAt(now, answerWithinMs);
    const inserted = yield* row<{ readonly key: number }>(sql`
      INSERT INTO holdfast_await_event (id, session, scope_kind, scope, name, state, opened_at, due_at)
      VALUES (${id}, ${session}, ${scope.kind}, ${scope.id}, ${key}, 'open', ${now}, ${dueAt})
      ON CONFLICT (session, scope_kind, scope, name) DO NOTHING RETURNING key`);
    const tokenOf = (rowKey: number): string => awaitToken(database.bytes, secret, { id, rowKey });
    if (inserted !== undefined) return { id, token: tokenOf(inserted.key), dueAt, existed: false };
    const found = yield* eventAt(session, input);
    if (found === undefined) throw awaitEventNotFound(input);
    if (found.state === "revoked") throw awaitEventRevoked(input);
    const token = tokenOf(found.rowKey);
    return { id, token, dueAt: found.dueAt, existed: true };
  },
});
