import { isOverdue } from "../../../model/effect/await-event.ts";
import { instantOf } from "../../../model/time/clock.ts";
import { attemptsOf, groupInvalid, type GroupKind } from "../../../model/effect/group.ts";
import type { WaitOptions } from "../../../sql/database.ts";
import { row, run, storeOperation, type Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { onlyWait, type Call } from "../../method.ts";
import type { AwaitContext } from "../await/context.ts";
import { awaitEventNotFound, eventAt, lockedEvents } from "../await/event-row.ts";
import { timeOut } from "../await/settle.ts";
import { aggregateOf, checkedPlace, keptSessionOf, type EffectScope } from "../scope.ts";
import {
  assertSameGroup,
  groupNotFound,
  groupRowAt,
  withMembers,
  type GroupPlace,
  type GroupTerms,
} from "./group-row.ts";
import { checkedMembers, type GroupMemberDraft } from "./members.ts";
import { placeInGroups, placeMembers } from "./place.ts";

/** A group that callers can wait for. */
interface OpenedGroup {
  /** True when the same group was opened before. */
  readonly existed: boolean;
}

export interface OpenGroup extends GroupPlace, GroupTerms {}

/** @throws HoldfastError `GROUP_INVALID`, `EFFECT_SCOPE_INVALID`, `EFFECT_INVALID`, `ID_MALFORMED`, `OPTION_INVALID` */
export function givenOpen(
  _: AwaitContext,
  scope: EffectScope,
  key: string,
  kind: GroupKind,
  members: readonly GroupMemberDraft[],
  wait?: WaitOptions,
): Call<OpenGroup> {
  if (kind !== "race" && kind !== "all") throw groupInvalid("kind", "is neither race nor all");
  const terms = { kind, members: checkedMembers(members) };
  return {
    input: { ...checkedPlace("group", scope, key), ...terms },
    wait: onlyWait(wait),
  };
}

/**
 * Records the members of a group, and which of them have ended. Await-events must already be open,
 * so that a wait knows when they time out. Effects may be recorded later.
 *
 * @throws HoldfastError `GROUP_CONFLICT`, `AWAIT_EVENT_NOT_FOUND`,
 *   `SESSION_NOT_FOUND` or `SESSION_DELETED`.
 */
export const openGroup = storeOperation("openGroup", {
  key: (input) => aggregateOf(input),
  *one(context: AwaitContext, input: OpenGroup): Tx<OpenedGroup> {
    const { scope, key, kind, members } = input;
    const session = yield* keptSessionOf(scope);
    const openedAt = instantOf(() => context.clock.now());
    const inserted = yield* row<{ readonly key: number }>(sql`
      INSERT INTO holdfast_effect_group (session, scope_kind, scope, name, kind, opened_at)
      VALUES (${session}, ${scope.kind}, ${scope.id}, ${key}, ${kind}, ${openedAt})
      ON CONFLICT (session, scope_kind, scope, name) DO NOTHING RETURNING key`);
    if (inserted === undefined) {
      const found = yield* groupRowAt(session, input);
      if (found === undefined) throw groupNotFound(input);
      assertSameGroup(input, input, yield* withMembers(found));
      return { existed: true };
    }
    yield* timeOutMembers(context, session, input);
    for (const [ordinal, member] of members.entries()) {
      yield* run(sql`
        INSERT INTO holdfast_effect_group_member (effect_group, ordinal, kind, name, attempts)
        VALUES (${inserted.key}, ${ordinal}, ${member.kind}, ${member.key}, ${attemptsOf(member)})`);
    }
    yield* placeMembers(session, inserted.key);
    return { existed: false };
  },
});

/**
 * Records the timeouts of overdue members, which may not have been noticed yet.
 * @throws HoldfastError `AWAIT_EVENT_NOT_FOUND`
 */
function* timeOutMembers(
  context: AwaitContext,
  session: number,
  { scope, members }: OpenGroup,
): Tx<void> {
  const keys = members.flatMap(({ kind, key }) => (kind === "awaitEvent" ? key : []));
  for (const key of keys)
    if ((yield* eventAt(session, { scope, key })) === undefined)
      throw awaitEventNotFound({ scope, key });
  const [first, ...others] = keys;
  if (first === undefined) return;
  const address = { session, scope, key: first };
  const locked = yield* lockedEvents(context, address, others);
  const { now, event, overdue } = locked;
  const own = event !== undefined && isOverdue(event, now) ? [event] : [];
  const over = [...own, ...overdue];
  yield* timeOut(over);
  // Other groups may also wait for these events.
  yield* placeInGroups(over);
}
