import type { GroupKind } from "../../../model/effect/group.ts";
import { integersOf } from "../../../sql/dialect.ts";
import { rows, storeOperation, type Tx } from "../../../sql/operation.ts";
import { sql, type Statement } from "../../../sql/statement.ts";
import {
  list,
  pageOf,
  slicedByBytes,
  type List,
  type PageOptions,
  type Place,
  type Slice,
  type SliceBounds,
} from "../../list.ts";
import type { SessionName } from "../../session-name.ts";
import type { SessionRef } from "../../session-row.ts";
import { groupedBy } from "../../table-check.ts";
import type { AwaitContext } from "../await/context.ts";
import { aggregateOf, livingSessionOf, sessionOrNone } from "../scope.ts";
import {
  groupColumns,
  groupOf,
  groupRowAt,
  groupTable,
  memberColumns,
  withMembers,
  type GroupPlace,
  type GroupRecord,
  type GroupRow,
  type MemberRow,
} from "./group-row.ts";
import { memberDraft, standingOf, type GroupMemberDraft, type MemberStanding } from "./members.ts";

/**
 * A group and the state of each member. An effect that has its place is read at the attempt that
 * gave it.
 */
export interface GroupStanding extends GroupRecord {
  readonly standings: readonly MemberStanding[];
}

/**
 * Reads a group with the current state of its members.
 * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED` or `CORRUPT_ROW`.
 */
export const readGroup = storeOperation("readGroup", {
  key: (input) => aggregateOf(input),
  *one(_: AwaitContext, input: GroupPlace): Tx<GroupStanding | undefined> {
    const session = yield* livingSessionOf(input.scope);
    const found = yield* groupRowAt(session, input);
    if (found === undefined) return undefined;
    const group = yield* withMembers(found);
    const standings: MemberStanding[] = [];
    for (const [ordinal, member] of group.members.entries()) {
      const ended = group.placed.find((place) => place.ordinal === ordinal);
      const attempt = ended?.attempt ?? null;
      standings.push(yield* standingOf(session, input.scope, member, attempt));
    }
    return { ...group, standings };
  },
});

/** A group as callers see it. */
export interface EffectGroup {
  readonly scope: { readonly kind: string; readonly id: string };
  readonly key: string;
  readonly kind: GroupKind;
  readonly openedAt: number;
  readonly members: readonly GroupMemberDraft[];
  /** The indexes of the members that are recorded as ended, in that order. */
  readonly order: readonly number[];
}

function groupView(group: GroupRecord): EffectGroup {
  const { scope, key, kind, openedAt, members, placed } = group;
  return {
    scope,
    key,
    kind,
    openedAt,
    members: members.map(memberDraft),
    order: placed.map(({ ordinal }) => ordinal),
  };
}

interface GroupFilter {
  /** Undefined for groups of scopes without a session. */
  readonly session: SessionRef | undefined;
}

interface FoundGroup {
  readonly row: GroupRow;
  readonly members: readonly MemberRow[];
}

/**
 * Lists the groups of a session in the order in which they were opened.
 * @throws HoldfastError `SESSION_NOT_FOUND` or `SESSION_DELETED`.
 */
export const groupList: List<
  AwaitContext,
  [session: SessionName | null, options?: PageOptions],
  EffectGroup
> = list("listGroups", {
  table: groupTable,
  given(_: AwaitContext, session: SessionName | null, options?: PageOptions) {
    const filter = { session: sessionOrNone(session) };
    return { filter, page: pageOf(options, []).page };
  },
  slice: groupSlice,
  keyOf: ({ row }: FoundGroup) => String(row.key),
  itemOf: (_, { row, members }) => groupView(groupOf(row, members)),
});

function* groupSlice(
  _: AwaitContext,
  filter: GroupFilter,
  bounds: SliceBounds,
): Tx<Slice<FoundGroup>> {
  const session = yield* livingSessionOf(filter);
  const next = (after: Place | undefined, count: number): Statement => sql`
    FROM holdfast_effect_group g
    WHERE session = ${session} AND key > ${Number(after?.[0] ?? 0)} ORDER BY key LIMIT ${count}`;
  const slice = yield* slicedByBytes(
    bounds,
    ({ key }: GroupRow) => [key],
    function* (after, count) {
      const found = yield* rows<{ readonly bytes: number }>(sql`
        SELECT (SELECT COALESCE(SUM(octet_length(m.name)), 0) FROM holdfast_effect_group_member m
          WHERE m.effect_group = g.key) AS bytes ${next(after, count)}`);
      return found.map(({ bytes }) => bytes);
    },
    function* (after, count) {
      return yield* rows<GroupRow>(sql`SELECT ${groupColumns} ${next(after, count)}`);
    },
  );
  const membersOf = yield* membersIn(slice.rows);
  return {
    next: slice.next,
    rows: slice.rows.map((row) => ({ row, members: membersOf(row.key) })),
  };
}

function* membersIn(groups: readonly GroupRow[]): Tx<(group: number) => readonly MemberRow[]> {
  if (groups.length === 0) return () => [];
  const found = yield* rows<MemberRow>(sql`
    SELECT ${memberColumns} FROM holdfast_effect_group_member
    WHERE effect_group IN ${integersOf(groups.map(({ key }) => key))} ORDER BY effect_group, ordinal`);
  return groupedBy(found, (each) => each.effect_group);
}
