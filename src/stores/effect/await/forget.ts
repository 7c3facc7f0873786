import type { AwaitEventId } from "../../../model/effect/await-token.ts";
import { integersOf, lockRow } from "../../../sql/dialect.ts";
import { announce, rows, run, storeOperation, type Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { sweep, sweepOptions, type SweepOptions } from "../../removal.ts";
import { forgetGroups } from "../groups/group-row.ts";
import {
  aggregateOf,
  checkedScope,
  keptSessionOf,
  type EffectScope,
  type EffectScopeRef,
} from "../scope.ts";
import type { AwaitContext } from "./context.ts";
import { awaitEventEnded } from "./event-row.ts";

/** The number of rows removed from a scope. */
interface ForgetAwaitEventsReport {
  /** Rows of await-events, groups and members. */
  readonly rows: number;
}

/**
 * Removes the await-events and groups of a scope, one slice per transaction.
 * @throws HoldfastError `EFFECT_SCOPE_INVALID`, `SESSION_NOT_FOUND`, `SESSION_DELETED`, `ABORTED`
 */
export async function forgetInSlices(
  context: AwaitContext,
  given: EffectScope,
  sweeping: SweepOptions<ForgetAwaitEventsReport> | undefined,
): Promise<ForgetAwaitEventsReport> {
  const options = sweepOptions(sweeping);
  const { rowsPerSlice: rowsMax, signal } = options;
  const scope = checkedScope(given);
  return sweep(context, options, async () => {
    const removed = await context.database.write(
      forgetAwaits(context),
      { scope, rowsMax },
      { signal },
    );
    return { report: { rows: removed }, isDone: removed < rowsMax };
  });
}

interface ForgetAwaits {
  readonly scope: EffectScopeRef;
  readonly rowsMax: number;
}

/**
 * Removes rows of the groups and await-events of a scope up to a limit, and returns their number. A
 * smaller number than the limit means that none is left. Waiting callers are notified, and the
 * tokens stop working.
 *
 * @throws HoldfastError `SESSION_NOT_FOUND` or `SESSION_DELETED`.
 */
const forgetAwaits = storeOperation("forgetAwaits", {
  key: (input) => aggregateOf(input),
  *one(_: AwaitContext, { scope, rowsMax }: ForgetAwaits): Tx<number> {
    const session = yield* keptSessionOf(scope);
    // Every transaction locks await-events before groups.
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
});
