import { integersOf, lockRow } from "../../sql/dialect.ts";
import { announce, rows, run, plainOperation } from "../../sql/operation.ts";
import type { Operation } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { aggregateOf } from "./effect-row.ts";
import { keptScope } from "./scope.ts";
import type { EffectScopeRef } from "./scope.ts";
import { effectChanged } from "./topics.ts";

export interface ForgetEffects {
  readonly scope: EffectScopeRef;
  readonly rowsMax: number;
}

/**
 * Removes at most so many effects of a scope; fewer means that none is left.
 * Whoever is at one of them learns that it is gone.
 *
 * @throws HoldfastError `SESSION_NOT_FOUND` or `SESSION_DELETED`.
 */
export const forgetEffects: Operation<ForgetEffects, number> = plainOperation(
  "forgetEffects",
  {
    key: (input: ForgetEffects) => aggregateOf(input),
    *one({ scope, rowsMax }) {
      const { session } = yield* keptScope(scope);
      const found = yield* rows<{
        readonly key: number;
        readonly status: string;
      }>(sql`
        SELECT key, status FROM holdfast_effect
        WHERE session = ${session} AND scope_kind = ${scope.kind} AND scope = ${scope.id}
        ORDER BY replay_key, attempt LIMIT ${rowsMax} ${lockRow}`);
      if (found.length === 0) return 0;
      yield* run(sql`
        DELETE FROM holdfast_effect WHERE key IN ${integersOf(found.map(({ key }) => key))}`);
      for (const { key, status } of found)
        if (status === "inProgress")
          yield* announce(effectChanged, String(key));
      return found.length;
    },
  },
);
