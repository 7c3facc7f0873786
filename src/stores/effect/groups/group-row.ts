import { corruptRow } from "../../../model/corrupt-row.ts";
import {
  groupDifference,
  type GroupKind,
  type GroupMember,
  type MemberPlace,
} from "../../../model/effect/group.ts";
import { HoldfastError } from "../../../model/errors.ts";
import { excerpt } from "../../../model/values/excerpt.ts";
import { lockRow } from "../../../sql/dialect.ts";
import { announce, row, rows, run, type Tx } from "../../../sql/operation.ts";
import { sql, type Statement } from "../../../sql/statement.ts";
import type { OwnedRows } from "../../removal.ts";
import type { AwaitPlace } from "../await/event-row.ts";
import type { EffectScopeRef } from "../scope.ts";

/**
 * A group records its members, and their places as they end. An await-event
 * that ends gives its groups their places in its own transaction; effects,
 * whose path is hot, know nothing of groups, and are found by whoever waits or
 * by the next place that is given. A place keeps the attempt it was given for,
 * so later attempts change no answer, and `decideGroup` answers from places
 * alone: once a group is decided only reads are made.
 */

/** What waiters listen for: members of the group whose row has this key were given their places. */
export const groupChanged = "effect-group.changed";

export const groupTable = "holdfast_effect_group";
const memberTable = "holdfast_effect_group_member";

/** Where a group is: like what it waits for, a scope and a key. */
export type GroupPlace = AwaitPlace;

/** The columns of `holdfast_effect_group`. */
export interface GroupRow {
  readonly key: number;
  readonly scope_kind: string;
  readonly scope: string;
  readonly name: string;
  readonly kind: string;
  readonly opened_at: number;
}

export const groupColumns: Statement = sql`key, scope_kind, scope, name, kind, opened_at`;

export interface MemberRow {
  readonly effect_group: number;
  readonly ordinal: number;
  readonly kind: string;
  readonly name: string;
  readonly attempts: number;
  readonly place: number | null;
  readonly attempt: number | null;
  readonly succeeded: number | null;
  readonly settled_at: number | null;
}

export const memberColumns: Statement = sql`
  effect_group, ordinal, kind, name, attempts, place, attempt, succeeded, settled_at`;

/** A group as it is recorded. */
export interface GroupRecord {
  readonly rowKey: number;
  readonly scope: { readonly kind: string; readonly id: string };
  readonly key: string;
  readonly kind: GroupKind;
  readonly openedAt: number;
  readonly members: readonly GroupMember[];
  /** Those that have ended, in the order in which they did. */
  readonly placed: readonly MemberPlace[];
}

/** The row of a group. */
export function* groupRowAt(session: number, { scope, key }: GroupPlace): Tx<GroupRow | undefined> {
  return yield* row<GroupRow>(sql`
    SELECT ${groupColumns} FROM holdfast_effect_group
    WHERE session = ${session} AND scope_kind = ${scope.kind} AND scope = ${scope.id} AND name = ${key}`);
}

/** The same by its key, locked until the transaction ends: last of all, after sessions and members. */
export function* lockedGroup(key: number): Tx<GroupRow | undefined> {
  return yield* row<GroupRow>(sql`
    SELECT ${groupColumns} FROM holdfast_effect_group WHERE key = ${key} ${lockRow}`);
}

/** A group with its members. @throws HoldfastError `CORRUPT_ROW` */
export function* withMembers(found: GroupRow): Tx<GroupRecord> {
  const members = yield* rows<MemberRow>(sql`
    SELECT ${memberColumns} FROM holdfast_effect_group_member WHERE effect_group = ${found.key} ORDER BY ordinal`);
  return groupOf(found, members);
}

/** A group of rows. @throws HoldfastError `CORRUPT_ROW` */
export function groupOf(found: GroupRow, members: readonly MemberRow[]): GroupRecord {
  const { key, kind } = found;
  if (kind !== "race" && kind !== "all")
    throw corruptRow(groupTable, key, "is of a kind that there is not");
  if (members.some(({ ordinal }, index) => ordinal !== index))
    throw corruptRow(groupTable, key, "lacks members");
  const placed = members.flatMap(placeOf).toSorted((a, b) => a.place - b.place);
  if (placed.some(({ place }, index) => place !== index + 1))
    throw corruptRow(groupTable, key, "has gaps in its order");
  return {
    rowKey: key,
    scope: { kind: found.scope_kind, id: found.scope },
    key: found.name,
    kind,
    openedAt: found.opened_at,
    members: members.map(memberOf),
    placed,
  };
}

function memberOf(found: MemberRow): GroupMember {
  const { kind, name: key, attempts } = found;
  if (kind === "awaitEvent") return { kind, key };
  if (kind === "effect") return { kind, key, attempts };
  throw corruptMember(found, "is of a kind that there is not");
}

function placeOf(found: MemberRow): readonly MemberPlace[] {
  const { ordinal, place, attempt, succeeded, settled_at: at } = found;
  if (place === null) return [];
  const isWhole = (attempt !== null) === (found.kind === "effect");
  if (at === null || (succeeded !== 0 && succeeded !== 1) || !isWhole)
    throw corruptMember(found, "has a place but lacks other parts");
  return [{ ordinal, place, attempt, isSuccess: succeeded === 1, at }];
}

function corruptMember(
  { effect_group: group, ordinal }: MemberRow,
  why: string,
): ReturnType<typeof corruptRow> {
  return corruptRow(memberTable, `${group}.${ordinal}`, why);
}

/** What goes with a session: the groups of its scopes. */
export const groupsOwned: readonly OwnedRows[] = [
  {
    table: "holdfast_effect_group",
    remove: (session, rowsMax) => removeGroups(sql`g.session = ${session}`, rowsMax),
  },
];

/** Removes rows of groups `g` with their members up to a limit; fewer means that none is left. */
function* removeGroups(which: Statement, rowsMax: number): Tx<number> {
  const members = yield* run(sql`
    DELETE FROM holdfast_effect_group_member WHERE (effect_group, ordinal) IN (
      SELECT m.effect_group, m.ordinal FROM holdfast_effect_group g
        JOIN holdfast_effect_group_member m ON m.effect_group = g.key
      WHERE ${which} ORDER BY g.key, m.ordinal LIMIT ${rowsMax})`);
  if (members >= rowsMax) return members;
  // Only when all members are gone, since they are found through their groups.
  return (
    members +
    (yield* run(sql`
      DELETE FROM holdfast_effect_group WHERE key IN (
        SELECT g.key FROM holdfast_effect_group g WHERE ${which} ORDER BY g.key LIMIT ${rowsMax - members})`))
  );
}

/** Removes rows of the groups of a scope up to a limit, and tells waiting callers; fewer means that none is left. */
export function* forgetGroups(
  sessionKey: number,
  { kind, id }: Pick<EffectScopeRef, "kind" | "id">,
  rowsMax: number,
): Tx<number> {
  const which = sql`g.session = ${sessionKey} AND g.scope_kind = ${kind} AND g.scope = ${id}`;
  const found = yield* rows<{ readonly key: number }>(sql`
    SELECT g.key FROM holdfast_effect_group g WHERE ${which} ORDER BY g.key LIMIT ${rowsMax} ${lockRow}`);
  for (const { key } of found) yield* announce(groupChanged, String(key));
  return yield* removeGroups(which, rowsMax);
}

/** What a group is: the same whenever its scope is run. */
export interface GroupTerms {
  readonly kind: GroupKind;
  readonly members: readonly GroupMember[];
}

/** Lets only the same group pass. @throws HoldfastError `GROUP_CONFLICT` */
export function assertSameGroup(place: GroupPlace, given: GroupTerms, recorded: GroupTerms): void {
  const path = groupDifference(recorded, given);
  if (path === undefined) return;
  throw new HoldfastError(
    "GROUP_CONFLICT",
    `The ${groupTitle(place)} was recorded before and differs at ${path}; nothing was changed. ` +
      "Wait for the same members in the same order whenever the scope is run again, or use another key.",
    { ...namesOf(place), path },
  );
}

export function groupNotFound(place: GroupPlace): HoldfastError {
  return new HoldfastError(
    "GROUP_NOT_FOUND",
    `There is no ${groupTitle(place)}. Wait for it with race or all first.`,
    namesOf(place),
  );
}

/** Such as `group "first" of turn "t7"`. */
export function groupTitle({ scope, key }: GroupPlace): string {
  return `group ${excerpt(key)} of ${scope.kind} ${excerpt(scope.id)}`;
}

function namesOf({ scope, key }: GroupPlace): Readonly<Record<string, string>> {
  return { scopeKind: scope.kind, scope: scope.id, key };
}
