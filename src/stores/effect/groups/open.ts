import { isOverdue } from "../../../model/await-event.ts";
import { instantOf } from "../../../model/clock.ts";
import type { Now } from "../../../model/clock.ts";
import { attemptsOf } from "../../../model/effect-group.ts";
import type { GroupKind, GroupMember } from "../../../model/effect-group.ts";
import { row, run, plainOperation } from "../../../sql/operation.ts";
import type { Operation, Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { awaitEventNotFound } from "../await/errors.ts";
import { aggregateOf, eventAt, lockedEvents } from "../await/event-row.ts";
import { timeOut } from "../await/settle.ts";
import { sharedKeyOf } from "../await/session-key.ts";
import { assertSameGroup, groupNotFound } from "./errors.ts";
import { groupRowAt, withMembers } from "./group-row.ts";
import type { GroupPlace } from "./group-row.ts";
import { placeInGroups, placeMembers } from "./place.ts";

export interface OpenGroup extends GroupPlace {
  readonly kind: GroupKind;
  readonly members: readonly GroupMember[];
  readonly now: Now;
}

/**
 * Records what a group waits for, and which of its members have ended by now;
 * false when the same group was opened before. Await-events must be open, so
 * that whoever waits knows when they time out; effects may come later.
 *
 * @throws HoldfastError `GROUP_CONFLICT`, `AWAIT_EVENT_NOT_FOUND`,
 *   `SESSION_NOT_FOUND` or `SESSION_DELETED`.
 */
export const openGroup: Operation<OpenGroup, boolean> = plainOperation(
  "openGroup",
  {
    key: (input: OpenGroup) => aggregateOf(input),
    *one(input) {
      const { scope, key, kind, members, now } = input;
      const session = yield* sharedKeyOf(scope);
      const inserted = yield* row<{ readonly key: number }>(sql`
      INSERT INTO holdfast_effect_group (session, scope_kind, scope, name, kind, opened_at)
      VALUES (${session}, ${scope.kind}, ${scope.id}, ${key}, ${kind}, ${instantOf(now)})
      ON CONFLICT (session, scope_kind, scope, name) DO NOTHING RETURNING key`);
      if (inserted === undefined) {
        const found = yield* groupRowAt(session, input);
        if (found === undefined) throw groupNotFound(input);
        assertSameGroup(input, input, yield* withMembers(found));
        return false;
      }
      yield* timeOutMembers(session, input);
      for (const [ordinal, member] of members.entries()) {
        yield* run(sql`
        INSERT INTO holdfast_effect_group_member (effect_group, ordinal, kind, name, attempts)
        VALUES (${inserted.key}, ${ordinal}, ${member.kind}, ${member.key}, ${attemptsOf(member)})`);
      }
      yield* placeMembers(session, inserted.key);
      return true;
    },
  },
);

/** Nobody may have noticed yet that the time of some is over. @throws HoldfastError `AWAIT_EVENT_NOT_FOUND` */
function* timeOutMembers(
  session: number,
  { scope, members, now: tell }: OpenGroup,
): Tx<void> {
  const keys = members.flatMap(({ kind, key }) =>
    kind === "awaitEvent" ? key : [],
  );
  for (const key of keys)
    if ((yield* eventAt(session, { scope, key })) === undefined)
      throw awaitEventNotFound({ scope, key });
  const [first, ...others] = keys;
  if (first === undefined) return;
  const address = { session, scope, key: first };
  const { now, event, overdue } = yield* lockedEvents(address, others, tell);
  const own = event !== undefined && isOverdue(event, now) ? [event] : [];
  const over = [...own, ...overdue];
  yield* timeOut(over);
  // Other groups may wait for them too.
  yield* placeInGroups(over);
}
