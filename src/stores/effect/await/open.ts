import { awaitEventId, awaitToken, type AwaitEventId } from "../../../model/effect/await-token.ts";
import { instantOf } from "../../../model/time/clock.ts";
import { durationMs, type Duration } from "../../../model/time/durations.ts";
import { expiryAt } from "../../../model/lease.ts";
import type { WaitOptions } from "../../../sql/database.ts";
import { row, storeOperation, type StoreOperation } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { optionsAndWait, type Call } from "../../method.ts";
import { aggregateOf, checkedPlace, keptSessionOf, type EffectScope } from "../scope.ts";
import { ensureSecret, type AwaitContext } from "./context.ts";
import { awaitEventNotFound, awaitEventRevoked, eventAt, type AwaitPlace } from "./event-row.ts";

export interface OpenAwaitEventOptions extends WaitOptions {
  /** How long there is to answer; defaults to for ever. Counted from when it was first opened. */
  readonly answerWithin?: Duration;
}

/** An await-event that can be answered. */
export interface OpenedAwaitEvent {
  readonly id: AwaitEventId;
  /** For those who may answer it. The same whenever it is opened again, and never listed. */
  readonly token: string;
  /** When it times out; null for never. */
  readonly dueAt: number | null;
  /** True when it had been opened before; then it may have been answered already. */
  readonly existed: boolean;
}

interface OpenAwaitEvent extends AwaitPlace {
  /** How long there is to answer; null for ever. One that is open already keeps its due time. */
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
 * Opens an await-event, or finds the one of the same place, whatever its
 * outcome: its id, its due time and with them its token stay what they were.
 *
 * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`, or
 *   `AWAIT_EVENT_REVOKED`: one that was revoked is never opened again.
 */
export const openAwaitEvent: StoreOperation<AwaitContext, OpenAwaitEvent, OpenedAwaitEvent> =
  storeOperation("openAwaitEvent", {
    snapshotSafe: true,
    key: (input: OpenAwaitEvent) => aggregateOf(input),
    *one(context: AwaitContext, input) {
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
      const tokenOf = (rowKey: number): string =>
        awaitToken(database.bytes, secret, { id, rowKey });
      if (inserted !== undefined)
        return { id, token: tokenOf(inserted.key), dueAt, existed: false };
      const found = yield* eventAt(session, input);
      if (found === undefined) throw awaitEventNotFound(input);
      if (found.state === "revoked") throw awaitEventRevoked(input);
      const token = tokenOf(found.rowKey);
      return { id, token, dueAt: found.dueAt, existed: true };
    },
  });
