import { nextPlaces, type MemberEnd } from "../../../model/effect/group.ts";
import { announce, rows, run, storeOperation, type Tx } from "../../../sql/operation.ts";
import { sql, type Statement } from "../../../sql/statement.ts";
import { isDamage } from "../../damage.ts";
import type { AwaitContext } from "../await/context.ts";
import type { AwaitAddress } from "../await/event-row.ts";
import { aggregateOf, keptSessionOf } from "../scope.ts";
import {
  groupChanged,
  groupRowAt,
  lockedGroup,
  withMembers,
  type GroupPlace,
} from "./group-row.ts";
import { endOf, standingOf } from "./members.ts";

/**
 * Gives places to all members of a group that have ended since the last call. All are placed
 * together, so their order is that of their ends, even if a later end was noticed first. A place is
 * given once and never changes.
 */
export function* placeMembers(session: number, group: number): Tx<number> {
  const found = yield* lockedGroup(group);
  if (found === undefined) return 0;
  const { members, placed, scope } = yield* withMembers(found);
  const hasPlace = new Set(placed.map(({ ordinal }) => ordinal));
  const ended: MemberEnd[] = [];
  for (const [ordinal, member] of members.entries()) {
    if (hasPlace.has(ordinal)) continue;
    const own = { ...scope, session: undefined };
    const end = endOf(ordinal, yield* standingOf(session, own, member, null));
    if (end !== undefined) ended.push(end);
  }
  for (const next of nextPlaces(placed.length, ended))
    yield* run(sql`
      UPDATE holdfast_effect_group_member
      SET place = ${next.place}, attempt = ${next.attempt}, succeeded = ${next.isSuccess ? 1 : 0}, settled_at = ${next.at}
      WHERE effect_group = ${group} AND ordinal = ${next.ordinal}`);
  if (ended.length > 0) yield* announce(groupChanged, String(group));
  return ended.length;
}

/**
 * Does the same for all groups that wait for ended await-events of one session, in the transaction
 * that ends those events. A damaged group does not stop the events from ending; a caller that waits
 * for the group gets the error.
 */
export function* placeInGroups(events: readonly AwaitAddress[]): Tx<void> {
  const [first] = events;
  if (first === undefined) return;
  const groups = new Set<number>();
  for (const event of events) {
    const found = yield* rows<{ readonly key: number }>(sql`
      SELECT g.key FROM ${groupsWith(event)}`);
    for (const { key } of found) groups.add(key);
  }
  // Groups are locked in one order, no matter which of their members end together.
  for (const group of [...groups].toSorted((a, b) => a - b))
    yield* placeUnlessDamaged(first.session, group);
}

/**
 * The groups that wait for an await-event, as `g`, joined with its row among their members, as `m`.
 */
function groupsWith({ session, scope, key }: AwaitAddress): Statement {
  return sql`holdfast_effect_group g JOIN holdfast_effect_group_member m
    ON m.effect_group = g.key AND g.session = ${session} AND g.scope_kind = ${scope.kind} AND g.scope = ${scope.id}
    AND m.kind = 'awaitEvent' AND m.name = ${key} AND m.place IS NULL`;
}

/** The names of the other await-events in the groups that wait for this one. */
export function* awaitedBeside(event: AwaitAddress): Tx<readonly string[]> {
  const others = yield* rows<{ readonly name: string }>(sql`
    SELECT DISTINCT o.name FROM ${groupsWith(event)} JOIN holdfast_effect_group_member o
      ON o.effect_group = g.key AND o.kind = 'awaitEvent' AND o.name <> ${event.key} AND o.place IS NULL`);
  return others.map(({ name }) => name);
}

function* placeUnlessDamaged(session: number, group: number): Tx<void> {
  try {
    yield* placeMembers(session, group);
  } catch (error) {
    if (!isDamage(error)) throw error;
  }
}

/**
 * Records the order in which members of a group have ended so far, and returns the number of new
 * places. A wait calls this before it answers, so that every later call gets the same answer.
 *
 * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED` or `CORRUPT_ROW`.
 */
export const settleGroup = storeOperation("settleGroup", {
  key: (input) => aggregateOf(input),
  *one(_: AwaitContext, input: GroupPlace): Tx<number> {
    const session = yield* keptSessionOf(input.scope);
    const found = yield* groupRowAt(session, input);
    return found === undefined ? 0 : yield* placeMembers(session, found.key);
  },
});
