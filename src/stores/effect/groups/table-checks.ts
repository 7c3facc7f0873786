import { integersOf } from "../../../sql/dialect.ts";
import { rows } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { inScopes } from "../../session-checks.ts";
import { byKey, groupedBy, tableCheck } from "../../table-check.ts";
import type { TableCheck } from "../../table-check.ts";
import { groupOf, groupTable, memberColumns } from "./group-row.ts";
import type { GroupRow, MemberRow } from "./group-row.ts";

interface OwnedGroup extends GroupRow {
  readonly session: number;
}

const group = tableCheck<OwnedGroup>({
  table: groupTable,
  select: sql`SELECT t.key, t.session, t.scope_kind, t.scope, t.name, t.kind, t.opened_at`,
  from: sql`FROM holdfast_effect_group t`,
  ...byKey,
  keyOf: ({ key }) => String(key),
  *partners(found) {
    const owned = yield* inScopes(found);
    const members = yield* rows<MemberRow>(sql`
      SELECT ${memberColumns} FROM holdfast_effect_group_member
      WHERE effect_group IN ${integersOf(found.map(({ key }) => key))} ORDER BY effect_group, ordinal`);
    const membersOf = groupedBy(members, (each) => each.effect_group);
    return (row, tools) => {
      const own = membersOf(row.key);
      const reason = owned(row, tools);
      if (reason !== undefined) return reason;
      // Members are removed before their group, slice by slice, when its scope is forgotten.
      if (own.length > 0) groupOf(row, own);
      return undefined;
    };
  },
});

interface OwnedMember extends MemberRow {
  readonly owner: number | null;
}

const member = tableCheck<OwnedMember>({
  table: "holdfast_effect_group_member",
  select: sql`
    SELECT t.effect_group, t.ordinal, t.kind, t.name, t.attempts, t.place, t.attempt, t.succeeded, t.settled_at, g.key AS owner`,
  from: sql`FROM holdfast_effect_group_member t LEFT JOIN holdfast_effect_group g ON g.key = t.effect_group`,
  order: sql`t.effect_group, t.ordinal`,
  behind: (last) => sql`(t.effect_group, t.ordinal) > (${last.effect_group}, ${last.ordinal})`,
  keyOf: (row) => `${row.effect_group}.${row.ordinal}`,
  judge: ({ owner }) => (owner === null ? "Its group is missing." : undefined),
});

export const effectGroupChecks: readonly TableCheck[] = [group, member];
