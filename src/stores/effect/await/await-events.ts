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
 * Await-events: a run waits for them inside, and an outside party answers them, across crashes of
 * either side. Prepared, `open` may be part of any transaction. The other methods may only be part
 * of a `readCommitted` one.
 */
export interface AwaitEvents {
  /**
   * Opens an await-event, or finds the existing one of this scope and key. An existing one keeps
   * its token and due time, even after it has ended.
   *
   * @throws HoldfastError `EFFECT_SCOPE_INVALID`, `EFFECT_INVALID`, `AWAIT_EVENT_REVOKED`,
   *   `SESSION_NOT_FOUND`, `SESSION_DELETED`
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
   * Resolves with the outcome of an await-event: at once when it is known, otherwise when the event
   * is answered or cancelled, or times out.
   *
   * @throws HoldfastError `AWAIT_EVENT_NOT_FOUND`, `AWAIT_EVENT_REVOKED`, `SESSION_NOT_FOUND`,
   *   `SESSION_DELETED`, `ABORTED`, `DEADLINE_EXCEEDED`
   */
  wait(scope: EffectScope, key: string, wait?: WaitOptions): Promise<AwaitOutcome<unknown, Error>>;
  /**
   * Answers with a value, by token; the caller need not know the session or scope. The first answer
   * wins, even if nobody waits for it yet. An equal later answer is `replayed`. Any other later
   * answer is `late` and gets the winning outcome.
   *
   * @throws HoldfastError `AWAIT_TOKEN_INVALID` for a token that is wrong, revoked or of a deleted
   *   session; `NOT_SERIALIZABLE`, `VALUE_TOO_LARGE`
   * @example await awaitEvents.resolve(token, { approved: true });
   */
  readonly resolve: Method<[token: string, value: unknown, wait?: WaitOptions], AwaitReply>;
  /**
   * Answers with an error; its name, message, code and causes are kept.
   * @throws HoldfastError `AWAIT_TOKEN_INVALID`
   */
  readonly fail: Method<[token: string, error: unknown, wait?: WaitOptions], AwaitReply>;
  /**
   * Cancels an await-event and notifies waiting callers. An event that has already ended keeps its
   * outcome.
   *
   * @throws HoldfastError `AWAIT_EVENT_NOT_FOUND`, `SESSION_NOT_FOUND`, `SESSION_DELETED`
   */
  readonly cancel: Method<[scope: EffectScope, key: string, wait?: WaitOptions], AwaitReply>;
  /**
   * Revokes the token of an await-event. A wait for the event fails, unless the event ended before.
   * @throws HoldfastError `AWAIT_EVENT_NOT_FOUND`, `SESSION_NOT_FOUND`, `SESSION_DELETED`
   */
  readonly revoke: Method<[scope: EffectScope, key: string, wait?: WaitOptions], AwaitReply>;
  /**
   * Returns the current state of an await-event; undefined when it was never opened. An overdue
   * event is first recorded as timed out.
   *
   * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`, `CORRUPT_ROW`
   */
  get(scope: EffectScope, key: string, wait?: WaitOptions): Promise<AwaitEvent | undefined>;
  /**
   * Lists the await-events of a session in the order in which they were opened. With null, lists
   * those of scopes without a session.
   *
   * @throws HoldfastError `CURSOR_INVALID`, `SESSION_NOT_FOUND`, `SESSION_DELETED`
   * @example const { items, next } = await awaitEvents.list("chat-7", { state: "open" });
   */
  readonly list: Method<
    [session: SessionName | null, options?: ListAwaitEventsOptions],
    Page<AwaitEvent>
  >;
  /**
   * Revokes all await-events of a session, or of one of its scopes, in small transactions. May be
   * repeated.
   *
   * @throws HoldfastError `ABORTED`, `SESSION_NOT_FOUND`, `SESSION_DELETED`
   */
  revokeAll(
    session: SessionName | null,
    options?: RevokeAwaitEventsOptions,
  ): Promise<{ readonly revoked: number }>;
  /**
   * Removes the await-events of a finished scope, in small transactions. The await-events of a
   * session are removed with the session. Tokens that were handed out stop working,
   * even if the same key is opened again.
   *
   * @throws HoldfastError `ABORTED`, `SESSION_NOT_FOUND`, `SESSION_DELETED`
   */
  forget(
    scope: EffectScope,
    options?: SweepOptions<{ readonly rows: number }>,
  ): Promise<{ readonly rows: number }>;
}

/**
 * Durable await-events. Each is opened in a scope under a key, answered from outside by token, and
 * awaited by the run of the scope, again after a crash. The object holds nothing, so a database may
 * have any number of them.
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
