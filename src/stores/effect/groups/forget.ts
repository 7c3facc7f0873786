import { lockRow } from "../../../sql/dialect.ts";
import { announce, rows, run } from "../../../sql/operation.ts";
import type { Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import type { Statement } from "../../../sql/statement.ts";
import type { EffectScopeRef } from "../scope.ts";
import { groupChanged } from "./topics.ts";

/** Removes at most so many rows of a deleted session's groups; fewer means that none is left. */
export function* forgetGroupsOf(
  sessionKey: number,
  rowsMax: number,
): Tx<number> {
  return yield* removed(sql`g.session = ${sessionKey}`, rowsMax);
}

/** The same for the groups of a scope; whoever waits is told. */
export function* forgetGroups(
  sessionKey: number,
  { kind, id }: Pick<EffectScopeRef, "kind" | "id">,
  rowsMax: number,
): Tx<number> {
  const which = sql`g.session = ${sessionKey} AND g.scope_kind = ${kind} AND g.scope = ${id}`;
  const found = yield* rows<{ readonly key: number }>(sql`
    SELECT g.key FROM holdfast_effect_group g WHERE ${which} ORDER BY g.key LIMIT ${rowsMax} ${lockRow}`);
  for (const { key } of found) yield* announce(groupChanged, String(key));
  return yield* removed(which, rowsMax);
}

function* removed(which: Statement, rowsMax: number): Tx<number> {
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
