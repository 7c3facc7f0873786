import { integersOf, lockRow } from "../../../sql/dialect.ts";
import { announce, rows, run, plainOperation } from "../../../sql/operation.ts";
import type { Operation } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { forgetGroups } from "../groups/forget.ts";
import type { EffectScopeRef } from "../scope.ts";
import type { AwaitEventId } from "../../../model/await-token.ts";
import { aggregateOf } from "./event-row.ts";
import { sharedKeyOf } from "./session-key.ts";
import { awaitEventEnded } from "./topics.ts";

export interface ForgetAwaits {
  readonly scope: EffectScopeRef;
  readonly rowsMax: number;
}

/**
 * Removes at most so many rows of the groups and await-events of a scope;
 * fewer means that none is left. Whoever waits learns that they are gone, and
 * tokens answer nothing from then on.
 *
 * @throws HoldfastError `SESSION_NOT_FOUND` or `SESSION_DELETED`.
 */
export const forgetAwaits: Operation<ForgetAwaits, number> = plainOperation(
  "forgetAwaits",
  {
    key: (input: ForgetAwaits) => aggregateOf(input),
    *one({ scope, rowsMax }) {
      const session = yield* sharedKeyOf(scope);
      // Await-events are locked before groups, whoever does it.
      const found = yield* rows<{
        readonly key: number;
        readonly id: AwaitEventId;
      }>(sql`
        SELECT key, id FROM holdfast_await_event
        WHERE session = ${session} AND scope_kind = ${scope.kind} AND scope = ${scope.id}
        ORDER BY key LIMIT ${rowsMax} ${lockRow}`);
      const removed = yield* forgetGroups(session, scope, rowsMax);
      const events = found.slice(0, rowsMax - removed);
      if (events.length > 0)
        yield* run(sql`
          DELETE FROM holdfast_await_event WHERE key IN ${integersOf(events.map(({ key }) => key))}`);
      for (const { id } of events) yield* announce(awaitEventEnded, id);
      return removed + events.length;
    },
  },
);
