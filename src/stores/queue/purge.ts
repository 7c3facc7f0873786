import type { Database } from "../../sql/database.ts";
import { sweep } from "../removal.ts";
import type { SweepOptions } from "../removal.ts";
import { purgeConsumed } from "./consumed.ts";

/** What was purged. */
export interface PurgeReport {
  readonly sourceKeys: number;
}

/** Forgets source keys of all queues that were consumed at an instant or before, a slice per transaction. */
export async function purgeInSlices(
  context: { readonly database: Database },
  until: number,
  options: SweepOptions<PurgeReport> & { readonly rowsPerSlice: number },
): Promise<PurgeReport> {
  const { rowsPerSlice: rowsMax, signal } = options;
  return sweep(context, options, async () => {
    const sourceKeys = await context.database.write(
      purgeConsumed,
      { until, rowsMax },
      { signal },
    );
    return { report: { sourceKeys }, isDone: sourceKeys < rowsMax };
  });
}
