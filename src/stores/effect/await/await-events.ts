import type { AwaitOutcome } from "../../../model/effect/await-event.ts";
import type { Database, WaitOptions } from "../../../sql/database.ts";
import type { StoreOptions } from "../../context.ts";
import { lists, type Page } from "../../list.ts";
import { writes, type Method } from "../../method.ts";
import type { SweepOptions } from "../../removal.ts";
import type { SessionName } from "../../session-name.ts";
import type { EffectScope } from "../scope.ts";
import { awaitContext } from "./context.ts";
import { forgetInSlices } from "./forget.ts";
import {
  givenOpen,
  openAwaitEvent,
  type OpenAwaitEventOptions,
  type OpenedAwaitEvent,
} from "./open.ts";
import { awaitList, type AwaitEvent, type ListAwaitEventsOptions } from "./read.ts";
import { revokeInSlices, type RevokeAwaitEventsOptions } from "./revoke.ts";
import {
  endAwaitEvent,
  givenCancel,
  givenFail,
  givenResolve,
  givenRevoke,
  resolveAwaitEvent,
  shownReply,
  type AwaitReply,
} from "./settle.ts";
import { getEvent, waitForOutcome } from "./wait.ts";

/**
 * What is waited for inside and answered from outside, across crashes of
 * either. Prepared, `open` may be a part of any transaction, the others of one
 * that is `readCommitted`.
 */
export interface AwaitEvents {
  /**
   * Opens an await-event, or finds the one of this scope and key: with the
   * same token and due time, whatever its outcome since.
   * @throws HoldfastError `EFFECT_SCOPE_INVALID`, `EFFECT_INVALID`, `AWAIT_EVENT_REVOKED`, `SESSION_NOT_FOUND`, `SESSION_DELETED`
   * @example
   * const turn = { session: "chat-7", kind: "turn", id: "t1" };
   * const { token } = await awaitEvents.open(turn, "approval", { answerWithin: "1 day" });
   * @example
   * const open = awaitEvents.open.prepare(turn, "approval");
   * await database.write("ask", function* () {
   *   const { token } = yield* open();
   *   yield* run(sql`INSERT INTO mail (body) VALUES (${`Approve: ${token}`})`);
   * });
   */
  readonly open: Method<
    [scope: EffectScope, key: string, options?: OpenAwaitEventOptions],
    OpenedAwaitEvent
  >;
  /**
   * Resolves with its outcome: at once when that is known, else when it is
   * answered or cancelled, or its time is over.
   * @throws HoldfastError `AWAIT_EVENT_NOT_FOUND`, `AWAIT_EVENT_REVOKED`, `SESSION_NOT_FOUND`, `SESSION_DELETED`, `ABORTED`, `DEADLINE_EXCEEDED`
   */
  wait(scope: EffectScope, key: string, wait?: WaitOptions): Promise<AwaitOutcome<unknown, Error>>;
  /**
   * Answers with a value, by token: the caller need not know sessions and
   * scopes. The first answer wins, also when it is not waited for yet; an
   * equal one is `replayed`, any other is `late` and told what won.
   * @throws HoldfastError `AWAIT_TOKEN_INVALID` for a token that is wrong, revoked or of a deleted session; `NOT_SERIALIZABLE`, `VALUE_TOO_LARGE`
   * @example await awaitEvents.resolve(token, { approved: true });
   */
  readonly resolve: Method<[token: string, value: unknown, wait?: WaitOptions], AwaitReply>;
  /** Answers with an error, of which name, message, code and causes are kept. @throws HoldfastError `AWAIT_TOKEN_INVALID` */
  readonly fail: Method<[token: string, error: unknown, wait?: WaitOptions], AwaitReply>;
  /** Gives it up: waiting callers are told so. What has ended before stays. @throws HoldfastError `AWAIT_EVENT_NOT_FOUND`, `SESSION_NOT_FOUND`, `SESSION_DELETED` */
  readonly cancel: Method<[scope: EffectScope, key: string, wait?: WaitOptions], AwaitReply>;
  /** Makes its token worthless; waiting for it fails, unless it has ended before. @throws HoldfastError `AWAIT_EVENT_NOT_FOUND`, `SESSION_NOT_FOUND`, `SESSION_DELETED` */
  readonly revoke: Method<[scope: EffectScope, key: string, wait?: WaitOptions], AwaitReply>;
  /**
   * One as it stands now; undefined when it was never opened. One whose time
   * is over is recorded as such first.
   * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`, `CORRUPT_ROW`
   */
  get(scope: EffectScope, key: string, wait?: WaitOptions): Promise<AwaitEvent | undefined>;
  /**
   * Those of a session (null: of scopes that belong to none), in the order in
   * which they were opened.
   * @throws HoldfastError `CURSOR_INVALID`, `SESSION_NOT_FOUND`, `SESSION_DELETED`
   * @example const { items, next } = await awaitEvents.list("chat-7", { state: "open" });
   */
  readonly list: Method<
    [session: SessionName | null, options?: ListAwaitEventsOptions],
    Page<AwaitEvent>
  >;
  /**
   * Revokes all that a session has, or those of one scope, in small
   * transactions. May be repeated.
   * @throws HoldfastError `ABORTED`, `SESSION_NOT_FOUND`, `SESSION_DELETED`
   */
  revokeAll(
    session: SessionName | null,
    options?: RevokeAwaitEventsOptions,
  ): Promise<{ readonly revoked: number }>;
  /**
   * Removes the await-events and groups of a scope that is done with, in small
   * transactions. Do this before its effects are forgotten, which groups refer
   * to; what belongs to a session goes with it anyway. Tokens that were given
   * out answer nothing any more, also when the same key is opened again.
   * @throws HoldfastError `ABORTED`, `SESSION_NOT_FOUND`, `SESSION_DELETED`
   */
  forget(
    scope: EffectScope,
    options?: SweepOptions<{ readonly rows: number }>,
  ): Promise<{ readonly rows: number }>;
}

/**
 * Durable await-events: opened in a scope under a key, answered from outside
 * by token, awaited by the run of the scope, again after a crash. Holds
 * nothing, so there may be any number of these over one database.
 */
export function awaitEvents(database: Database, options?: StoreOptions): AwaitEvents {
  const context = awaitContext(database, options);
  return {
    open: writes(context, openAwaitEvent, givenOpen),
    wait: async (scope, key, wait) => waitForOutcome(context, scope, key, wait),
    resolve: writes(context, resolveAwaitEvent, givenResolve, shownReply),
    fail: writes(context, resolveAwaitEvent, givenFail, shownReply),
    cancel: writes(context, endAwaitEvent, givenCancel, shownReply),
    revoke: writes(context, endAwaitEvent, givenRevoke, shownReply),
    get: async (scope, key, wait) => getEvent(context, scope, key, wait),
    list: lists(context, awaitList),
    revokeAll: async (session, given) => revokeInSlices(context, session, given),
    forget: async (scope, given) => forgetInSlices(context, scope, given),
  };
}
