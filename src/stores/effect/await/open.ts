import type { AwaitEventId, SignedEvent } from "../../../model/await-token.ts";
import { instantOf } from "../../../model/clock.ts";
import type { Now } from "../../../model/clock.ts";
import type { Encoded } from "../../../model/encoded.ts";
import { expiryAt } from "../../../model/lease.ts";
import { row, plainOperation } from "../../../sql/operation.ts";
import type { Operation } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { sharedKeyOf } from "./session-key.ts";
import { awaitEventNotFound, awaitEventRevoked } from "./errors.ts";
import { aggregateOf, eventAt } from "./event-row.ts";
import type { AwaitPlace } from "./event-row.ts";
import { madeSecret } from "./secret.ts";

export interface OpenAwaitEvent extends AwaitPlace {
  /** How long there is to answer; null for ever. One that is open already keeps its due time. */
  readonly answerWithinMs: number | null;
  /** What follows from the key of the session that was found; see `awaitEventId`. */
  readonly idIn: (session: number) => AwaitEventId;
  /** Makes the secret of the database when it has none yet; another one each time. */
  readonly newSecret: () => Encoded;
  /** Makes the token. Nobody but this is told the secret: whoever has it can answer everything. */
  readonly sign: (secret: Encoded, event: SignedEvent) => string;
  readonly now: Now;
}

/** An await-event that can be answered. */
export interface OpenedAwaitEvent {
  readonly id: AwaitEventId;
  /** For whoever may answer it. The same whenever it is opened again, and never listed. */
  readonly token: string;
  /** When it times out; null for never. */
  readonly dueAt: number | null;
  /** True when it had been opened before; then it may have been answered already. */
  readonly existed: boolean;
}

/**
 * Opens an await-event, or finds the one of the same place, whatever has come
 * of it: its id, its due time and with them its token stay what they were.
 *
 * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`, or
 *   `AWAIT_EVENT_REVOKED`: one that was revoked is never opened again.
 */
export const openAwaitEvent: Operation<OpenAwaitEvent, OpenedAwaitEvent> =
  plainOperation("openAwaitEvent", {
    snapshotSafe: true,
    key: (input: OpenAwaitEvent) => aggregateOf(input),
    *one(input) {
      const { scope, key, answerWithinMs } = input;
      const session = yield* sharedKeyOf(scope);
      const secret = yield* madeSecret(input.newSecret);
      const id = input.idIn(session);
      const now = instantOf(input.now);
      const dueAt =
        answerWithinMs === null ? null : expiryAt(now, answerWithinMs);
      const inserted = yield* row<{ readonly key: number }>(sql`
        INSERT INTO holdfast_await_event (id, session, scope_kind, scope, name, state, opened_at, due_at)
        VALUES (${id}, ${session}, ${scope.kind}, ${scope.id}, ${key}, 'open', ${now}, ${dueAt})
        ON CONFLICT (session, scope_kind, scope, name) DO NOTHING RETURNING key`);
      const tokenOf = (rowKey: number): string =>
        input.sign(secret, { id, rowKey });
      if (inserted !== undefined)
        return { id, token: tokenOf(inserted.key), dueAt, existed: false };
      const found = yield* eventAt(session, input);
      if (found === undefined) throw awaitEventNotFound(input);
      if (found.state === "revoked") throw awaitEventRevoked(input);
      const token = tokenOf(found.rowKey);
      return { id, token, dueAt: found.dueAt, existed: true };
    },
  });
