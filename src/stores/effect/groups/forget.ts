import { lockRow } from "../../../sql/dialect.ts";
import { announce, rows } from "../../../sql/operation.ts";
import type { Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import type { EffectScopeRef } from "../scope.ts";
import { removeGroups } from "./group-row.ts";
import { groupChanged } from "./topics.ts";

/** Removes at most so many rows of the groups of a scope, and tells those who wait; fewer means that none is left. */
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
