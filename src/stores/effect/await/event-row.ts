import { isAwaitState, type AwaitState } from "../../../model/effect/await-event.ts";
import { instantOf, type Clock } from "../../../model/time/clock.ts";
import type { AwaitEventId } from "../../../model/effect/await-token.ts";
import type { Encoded } from "../../../model/values/encoded.ts";
import { corruptRow } from "../../../model/corrupt-row.ts";
import { HoldfastError, type ErrorDetails } from "../../../model/errors.ts";
import { excerpt } from "../../../model/values/excerpt.ts";
import { lockRow } from "../../../sql/dialect.ts";
import { row, run, type Tx } from "../../../sql/operation.ts";
import { sql, type Statement } from "../../../sql/statement.ts";
import type { OwnedRows } from "../../removal.ts";
import type { EffectScopeRef, ScopedPlace } from "../scope.ts";

/**
 * An await-event is a row that leaves `open` once. The first request to end it wins
 * (`decideAwait`). A due time that has passed comes before every request, even if no caller has
 * recorded the timeout yet. The token is the id, which follows from session, scope and key, with an
 * HMAC over the id and the row key. The token is therefore the same when it is handed out again
 * after a crash, and a different one when the name was forgotten and is opened again.
 */

/** The topic of waiters: the await-event with this key has ended. */
export const awaitEventEnded = "await-event.ended";

export const awaitEventTable = "holdfast_await_event";

/** The columns of `holdfast_await_event` that operations read. */
export interface EventRow {
  readonly key: number;
  readonly id: AwaitEventId;
  readonly session: number;
  readonly scope_kind: string;
  readonly scope: string;
  readonly name: string;
  readonly state: AwaitState["state"];
  readonly opened_at: number;
  readonly due_at: number | null;
  readonly settled_at: number | null;
  readonly revoked_at: number | null;
  readonly hash: string | null;
  readonly payload: Encoded | null;
}

export const eventColumns: Statement = sql`
  key, id, session, scope_kind, scope, name, state, opened_at, due_at, settled_at, revoked_at, hash, payload`;

/** A scope within a known session. */
export type AwaitScope = Pick<EffectScopeRef, "kind" | "id">;

/** An await-event as it is stored. */
export interface AwaitRecord extends AwaitState {
  readonly rowKey: number;
  readonly id: AwaitEventId;
  /** The key of the session's row; 0 for a scope without a session. */
  readonly session: number;
  readonly scope: AwaitScope;
  readonly key: string;
  readonly openedAt: number;
  readonly settledAt: number | null;
  readonly revokedAt: number | null;
  readonly payload: Encoded | null;
}

/** @throws HoldfastError `CORRUPT_ROW` for a row that no operation writes. */
export function recordOf(found: EventRow): AwaitRecord {
  const { id, state, hash, payload, settled_at: settledAt } = found;
  if (!isAwaitState({ state, settledAt, hash, payload }))
    throw corruptRow(awaitEventTable, id, "has a state that its other columns contradict");
  return {
    rowKey: found.key,
    id,
    session: found.session,
    scope: { kind: found.scope_kind, id: found.scope },
    key: found.name,
    state,
    openedAt: found.opened_at,
    dueAt: found.due_at,
    settledAt,
    revokedAt: found.revoked_at,
    hash,
    payload,
  };
}

/** The scope and key of an await-event, as callers from inside name it. */
export type AwaitPlace = ScopedPlace;

function whichEvent({ session, scope, key }: AwaitAddress): Statement {
  return sql`SELECT ${eventColumns} FROM holdfast_await_event
    WHERE session = ${session} AND scope_kind = ${scope.kind} AND scope = ${scope.id} AND name = ${key}`;
}

/** Reads the await-event of a scope and key. @throws HoldfastError `CORRUPT_ROW` */
export function* eventAt(session: number, place: AwaitPlace): Tx<AwaitRecord | undefined> {
  const found = yield* row<EventRow>(whichEvent({ ...place, session }));
  return found && recordOf(found);
}

/** The session, scope and key of an await-event. */
export interface AwaitAddress {
  /** The key of the session's row; 0 for a scope without a session. */
  readonly session: number;
  readonly scope: AwaitScope;
  readonly key: string;
}

export function* addressOf(
  id: AwaitEventId,
): Tx<(AwaitAddress & { readonly rowKey: number }) | undefined> {
  const found = yield* row<EventRow>(sql`
    SELECT key, session, scope_kind, scope, name FROM holdfast_await_event WHERE id = ${id}`);
  if (found === undefined) return undefined;
  const { session, scope_kind: kind, scope, name } = found;
  return { rowKey: found.key, session, scope: { kind, id: scope }, key: name };
}

/**
 * Locks an await-event until the transaction ends, and reads the time once it is locked. Its session
 * is already held.
 *
 * @throws HoldfastError `CORRUPT_ROW`
 */
export function* lockedEvent(
  { clock }: { readonly clock: Clock },
  address: AwaitAddress,
): Tx<{ readonly now: number; readonly event: AwaitRecord | undefined }> {
  const found = yield* row<EventRow>(sql`${whichEvent(address)} ${lockRow}`);
  return { now: instantOf(() => clock.now()), event: found && recordOf(found) };
}

/** The await-events that a session owns, which are removed with it. */
export const awaitsOwned: readonly OwnedRows[] = [
  {
    table: awaitEventTable,
    remove: (session, rowsMax) =>
      run(sql`
        DELETE FROM holdfast_await_event WHERE key IN (
          SELECT key FROM holdfast_await_event WHERE session = ${session} ORDER BY key LIMIT ${rowsMax})`),
  },
];

/** The error for callers from inside, who may know which events exist. */
export function awaitEventNotFound(place: AwaitPlace): HoldfastError {
  return new HoldfastError(
    "AWAIT_EVENT_NOT_FOUND",
    `The ${awaitTitle(place)} does not exist. Open it before you await or end it.`,
    namesOf(place),
  );
}

export function awaitEventRevoked(place: AwaitPlace): HoldfastError {
  return new HoldfastError(
    "AWAIT_EVENT_REVOKED",
    `The ${awaitTitle(place)} was revoked, so it can no longer be answered. ` +
      "Stop waiting for it; open one under another key if the answer is still wanted.",
    namesOf(place),
  );
}

/** The title of an await-event, such as `await-event "approval" of turn "t7"`. */
export function awaitTitle({ scope, key }: AwaitPlace): string {
  return `await-event ${excerpt(key)} of ${scope.kind} ${excerpt(scope.id)}`;
}

function namesOf({ scope, key }: AwaitPlace): ErrorDetails {
  return { scopeKind: scope.kind, scope: scope.id, key };
}
