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
 * A group records its members, and their places as they end. An await-event that ends gives its
 * groups their places in its own transaction. Effects know nothing of groups, since their path is
 * hot. Their ends are found by a waiting caller, or when the next place is given. A place keeps the
 * attempt that it was given for, so later attempts change no answer. `decideGroup` answers from
 * places only, so a decided group is only read.
 */

/** The topic of waiters: members of the group with this row key were given their places. */
export const groupChanged = "effect-group.changed";

export const groupTable = "holdfast_effect_group";
const memberTable = "holdfast_effect_group_member";

/** The scope and key of a group, as for its members. */
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
  /** The ended members, in the order in which they ended. */
  readonly placed: readonly MemberPlace[];
}

/** Reads the row of a group. */
export function* groupRowAt(session: number, { scope, key }: GroupPlace): Tx<GroupRow | undefined> {
  return yield* row<GroupRow>(sql`
    SELECT ${groupColumns} FROM holdfast_effect_group
    WHERE session = ${session} AND scope_kind = ${scope.kind} AND scope = ${scope.id} AND name = ${key}`);
}

/**
 * Reads a group by its row key and locks it until the transaction ends. Groups are locked last,
 * after sessions and members.
 */
export function* lockedGroup(key: number): Tx<GroupRow | undefined> {
  return yield* row<GroupRow>(sql`
    SELECT ${groupColumns} FROM holdfast_effect_group WHERE key = ${key} ${lockRow}`);
}

/** Reads the members of a group. @throws HoldfastError `CORRUPT_ROW` */
export function* withMembers(found: GroupRow): Tx<GroupRecord> {
  const members = yield* rows<MemberRow>(sql`
    SELECT ${memberColumns} FROM holdfast_effect_group_member WHERE effect_group = ${found.key} ORDER BY ordinal`);
  return groupOf(found, members);
}

/** Builds a group from its rows. @throws HoldfastError `CORRUPT_ROW` */
export function groupOf(found: GroupRow, members: readonly MemberRow[]): GroupRecord {
  const { key, kind } = found;
  if (kind !== "race" && kind !== "all") throw corruptRow(groupTable, key, "has an unknown kind");
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
  throw corruptMember(found, "has an unknown kind");
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

/** The groups that a session owns, which are removed with it. */
export const groupsOwned: readonly OwnedRows[] = [
  {
    table: "holdfast_effect_group",
    remove: (session, rowsMax) => removeGroups(sql`g.session = ${session}`, rowsMax),
  },
];

/**
 * Removes rows of groups `g` with their members, up to a limit. A smaller number than the limit
 * means that none is left.
 */
function* removeGroups(which: Statement, rowsMax: number): Tx<number> {
  const members = yield* run(sql`
    DELETE FROM holdfast_effect_group_member WHERE (effect_group, ordinal) IN (
      SELECT m.effect_group, m.ordinal FROM holdfast_effect_group g
        JOIN holdfast_effect_group_member m ON m.effect_group = g.key
      WHERE ${which} ORDER BY g.key, m.ordinal LIMIT ${rowsMax})`);
  if (members >= rowsMax) return members;
  // Groups are removed only after all their members, since members are found through their groups.
  return (
    members +
    (yield* run(sql`
      DELETE FROM holdfast_effect_group WHERE key IN (
        SELECT g.key FROM holdfast_effect_group g WHERE ${which} ORDER BY g.key LIMIT ${rowsMax - members})`))
  );
}

/**
 * Removes rows of the groups of a scope up to a limit, and notifies waiting callers. A smaller
 * number than the limit means that none is left.
 */
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

/** The definition of a group; equal on every run of its scope. */
export interface GroupTerms {
  readonly kind: GroupKind;
  readonly members: readonly GroupMember[];
}

/** Refuses a group with another definition. @throws HoldfastError `GROUP_CONFLICT` */
export function assertSameGroup(place: GroupPlace, given: GroupTerms, recorded: GroupTerms): void {
  const path = groupDifference(recorded, given);
  if (path === undefined) return;
  throw new HoldfastError(
    "GROUP_CONFLICT",
    `The ${groupTitle(place)} is already recorded and differs at ${path}; nothing was changed. ` +
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

/** The title of a group, such as `group "first" of turn "t7"`. */
export function groupTitle({ scope, key }: GroupPlace): string {
  return `group ${excerpt(key)} of ${scope.kind} ${excerpt(scope.id)}`;
}

function namesOf({ scope, key }: GroupPlace): Readonly<Record<string, string>> {
  return { scopeKind: scope.kind, scope: scope.id, key };
}
