import type { Database } from "../../sql/database.ts";
import { run, storeOperation, type Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { sweep, type SweepOptions } from "../removal.ts";

/** The result of a purge. */
interface PurgeReport {
  readonly sourceKeys: number;
}

interface PurgeContext {
  readonly database: Database;
}

interface PurgeConsumed {
  /** Removes keys that were consumed at this instant or before. */
  readonly until: number;
  readonly rowsMax: number;
}

/**
 * Removes a slice of the oldest source keys. Fewer than requested means that no others are old
 * enough.
 */
export const purgeConsumed = storeOperation("purgeConsumed", {
  key: () => "",
  *one(_: PurgeContext, { until, rowsMax }: PurgeConsumed): Tx<number> {
    return yield* run(sql`
      DELETE FROM holdfast_queue_consumed
      WHERE at <= ${until} AND (session, source_key) IN (
        SELECT session, source_key FROM holdfast_queue_consumed
        WHERE at <= ${until} ORDER BY at LIMIT ${rowsMax})`);
  },
});

/**
 * Removes source keys of all queues that were consumed at an instant or before, one slice per
 * transaction.
 */
export async function purgeInSlices(
  context: PurgeContext,
  until: number,
  options: SweepOptions<PurgeReport> & { readonly rowsPerSlice: number },
): Promise<PurgeReport> {
  const { rowsPerSlice: rowsMax, signal } = options;
  return sweep(context, options, async () => {
    const sourceKeys = await context.database.write(
      purgeConsumed(context),
      { until, rowsMax },
      { signal },
    );
    return { report: { sourceKeys }, isDone: sourceKeys < rowsMax };
  });
}
