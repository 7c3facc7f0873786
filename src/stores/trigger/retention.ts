import { durationMs, type Duration } from "../../model/time/durations.ts";
import { draftOf } from "../../model/shape.ts";
import { integersOf, lockRow } from "../../sql/dialect.ts";
import { plainOperation, rows, run, type Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { isUnended } from "../process/process-row.ts";
import { sweep, sweepOptions, type SweepOptions } from "../removal.ts";
import type { TriggerContext } from "./context.ts";

interface OccurrenceRemovalReport {
  readonly removed: number;
  /** Removed occurrences and their deliveries. */
  readonly rows: number;
  /** Occurrences that were kept because a process that they started has not ended. */
  readonly kept: number;
}

/** Removes old occurrences with their deliveries, one slice per transaction. */
export async function removeOldOccurrences(
  context: TriggerContext,
  policy: { readonly olderThan: Duration },
  given: SweepOptions<OccurrenceRemovalReport> | undefined,
): Promise<OccurrenceRemovalReport> {
  const { database, clock } = context;
  const options = sweepOptions(given);
  const { olderThan } = draftOf("policy", policy, ["olderThan"]);
  const before = clock.now() - durationMs(olderThan, "olderThan");
  const { rowsPerSlice: rowsMax, signal } = options;
  let after: OccurrencePlace = { recordedAt: -1, key: 0 };
  return sweep(context, options, async () => {
    const { next, ...report } = await database.write(
      removeOccurrenceSlice,
      { before, after, rowsMax },
      { signal },
    );
    after = next ?? after;
    return { report, isDone: next === undefined };
  });
}

/** A place in the order in which occurrences were recorded. */
interface OccurrencePlace {
  readonly recordedAt: number;
  readonly key: number;
}

interface RemoveOccurrences {
  /** Recorded before this instant. */
  readonly before: number;
  readonly after: OccurrencePlace;
  /**
   * The largest number of rows that are examined. Removed occurrences count with their deliveries.
   */
  readonly rowsMax: number;
}

interface RemovedOccurrences extends OccurrenceRemovalReport {
  /** The place to continue from; undefined after the last slice. */
  readonly next: OccurrencePlace | undefined;
}

/**
 * Removes a slice of old occurrences with their deliveries. Processes stay: their ids remember that
 * they were started, so an occurrence that is recorded again finds them.
 */
export const removeOccurrenceSlice = plainOperation("removeOccurrences", {
  key: () => "",
  *one({ before, after, rowsMax }: RemoveOccurrences): Tx<RemovedOccurrences> {
    const found = yield* rows<OldRow>(sql`
      SELECT o.key, o.recorded_at,
        (SELECT COUNT(*) FROM holdfast_trigger_delivery d WHERE d.occurrence = o.key) AS deliveries,
        CASE WHEN EXISTS (
          SELECT 1 FROM holdfast_trigger_delivery d
          WHERE d.occurrence = o.key AND ${isUnended(sql`d.process`)}) THEN 1 ELSE 0 END AS is_busy
      FROM holdfast_trigger_occurrence o
      WHERE o.recorded_at < ${before} AND (o.recorded_at, o.key) > (${after.recordedAt}, ${after.key})
      ORDER BY o.recorded_at, o.key LIMIT ${rowsMax} ${lockRow}`);
    const slice = withinRows(found, rowsMax);
    const over = slice.filter((each) => each.is_busy === 0);
    const last = slice.at(-1);
    const isLast = slice.length === found.length && found.length < rowsMax;
    return {
      removed: over.length,
      rows: yield* remove(over.map(({ key }) => key)),
      kept: slice.length - over.length,
      next:
        isLast || last === undefined ? undefined : { recordedAt: last.recorded_at, key: last.key },
    };
  },
});

interface OldRow {
  readonly key: number;
  readonly recorded_at: number;
  readonly deliveries: number;
  readonly is_busy: 0 | 1;
}

/**
 * The occurrences that can be examined and removed within `rowsMax` rows; at least one, so that the
 * sweep advances.
 */
function withinRows(found: readonly OldRow[], rowsMax: number): readonly OldRow[] {
  let sum = 0;
  const beyond = found.findIndex(({ deliveries, is_busy: isBusy }, index) => {
    sum += isBusy === 1 ? 1 : 1 + deliveries;
    return index > 0 && sum > rowsMax;
  });
  return beyond === -1 ? found : found.slice(0, beyond);
}

function* remove(keys: readonly number[]): Tx<number> {
  if (keys.length === 0) return 0;
  const deliveries = yield* run(sql`
    DELETE FROM holdfast_trigger_delivery WHERE occurrence IN ${integersOf(keys)}`);
  return (
    deliveries +
    (yield* run(sql`
      DELETE FROM holdfast_trigger_occurrence WHERE key IN ${integersOf(keys)}`))
  );
}
