import type { Duration } from "../../model/durations.ts";
import type { Database } from "../../sql/database.ts";
import { forgottenInSlices } from "../slices.ts";
import { purgeConsumed } from "./consumed.ts";

/** How long the source key of a batch that has left the queue is remembered. */
export const sourceKeyMemoryUnlessTold: Duration = "30 days";

interface PurgeSlices {
  /** Those that were consumed at this instant or before. */
  readonly until: number;
  readonly rowsMax: number;
  readonly signal?: AbortSignal | undefined;
}

/** Forgets old source keys of all queues, a slice per transaction; tells how many. */
export async function purgeInSlices(
  database: Database,
  { until, rowsMax, signal }: PurgeSlices,
): Promise<number> {
  const slice = { until, rowsMax };
  return forgottenInSlices(database, rowsMax, () =>
    database.write(purgeConsumed, slice, { signal }),
  );
}
