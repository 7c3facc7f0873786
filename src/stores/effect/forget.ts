import { integersOf, lockRow } from "../../sql/dialect.ts";
import { announce, rows, run, storeOperation, type Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { sweep, sweepOptions, type SweepOptions } from "../removal.ts";
import type { EffectContext } from "./context.ts";
import { effectChanged } from "./effect-row.ts";
import {
  aggregateOf,
  checkedScope,
  keptSessionOf,
  type EffectScope,
  type EffectScopeRef,
} from "./scope.ts";

/** The number of effects removed from a scope. */
interface ForgetEffectsReport {
  readonly effects: number;
}

/**
 * Removes the effects of a scope, one slice per transaction.
 * @throws HoldfastError `EFFECT_SCOPE_INVALID`, `SESSION_NOT_FOUND`, `SESSION_DELETED`, `ABORTED`
 */
export async function forgetInSlices(
  context: EffectContext,
  given: EffectScope,
  sweeping: SweepOptions<ForgetEffectsReport> | undefined,
): Promise<ForgetEffectsReport> {
  const options = sweepOptions(sweeping);
  const { rowsPerSlice: rowsMax, signal } = options;
  const scope = checkedScope(given);
  return sweep(context, options, async () => {
    const effects = await context.database.write(
      forgetEffects(context),
      { scope, rowsMax },
      { signal },
    );
    return { report: { effects }, isDone: effects < rowsMax };
  });
}

interface ForgetEffects {
  readonly scope: EffectScopeRef;
  readonly rowsMax: number;
}

/**
 * Removes effects of a scope up to a limit, and returns their number. A smaller number than the
 * limit means that none is left. A worker that runs a removed effect is notified that it is gone.
 *
 * @throws HoldfastError `SESSION_NOT_FOUND` or `SESSION_DELETED`.
 */
export const forgetEffects = storeOperation("forgetEffects", {
  key: (input) => aggregateOf(input),
  *one(_: EffectContext, { scope, rowsMax }: ForgetEffects): Tx<number> {
    const session = yield* keptSessionOf(scope);
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
      if (status === "inProgress") yield* announce(effectChanged, String(key));
    return found.length;
  },
});
