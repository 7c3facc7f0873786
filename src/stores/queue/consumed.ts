import { row, run, plainOperation } from "../../sql/operation.ts";
import type { Operation, Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import type { BatchRow, QueueSource } from "./batch-row.ts";

/**
 * What remembers that a source has been dealt with after its batch is gone:
 * rows that are unique in the queue are no longer there to be met.
 */

/** Whether a batch of this source has left the queue, as far as it is remembered. */
export function* wasConsumed(
  session: number,
  source: QueueSource,
  forgottenUntil: number,
): Tx<boolean> {
  const found =
    typeof source === "string"
      ? yield* row(sql`
          SELECT at FROM holdfast_queue_consumed
          WHERE session = ${session} AND source_key = ${source} AND at > ${forgottenUntil}`)
      : yield* row(sql`
          SELECT sequence FROM holdfast_queue_wake_mark
          WHERE session = ${session} AND process = ${source.process} AND sequence >= ${source.sequence}`);
  return found !== undefined;
}

/** Remembers a batch that leaves the queue. */
export function* rememberConsumed(
  session: number,
  batch: Pick<BatchRow, "source_key" | "process" | "sequence">,
  now: number,
): Tx<void> {
  const { source_key: sourceKey, process, sequence } = batch;
  if (sourceKey !== null)
    yield* run(sql`
      INSERT INTO holdfast_queue_consumed (session, source_key, at) VALUES (${session}, ${sourceKey}, ${now})
      ON CONFLICT (session, source_key) DO UPDATE SET at = excluded.at`);
  if (process !== null && sequence !== null)
    yield* run(sql`
      INSERT INTO holdfast_queue_wake_mark (session, process, sequence) VALUES (${session}, ${process}, ${sequence})
      ON CONFLICT (session, process) DO UPDATE SET sequence = excluded.sequence
      WHERE holdfast_queue_wake_mark.sequence < excluded.sequence`);
}

export interface PurgeConsumed {
  /** Those that were consumed at this instant or before. */
  readonly until: number;
  readonly rowsMax: number;
}

/** Forgets a slice of the oldest source keys; fewer than asked for means that no more are old enough. */
export const purgeConsumed: Operation<PurgeConsumed, number> = plainOperation(
  "purgeConsumed",
  {
    key: () => "",
    *one({ until, rowsMax }) {
      return yield* run(sql`
        DELETE FROM holdfast_queue_consumed
        WHERE at <= ${until} AND (session, source_key) IN (
          SELECT session, source_key FROM holdfast_queue_consumed
          WHERE at <= ${until} ORDER BY at LIMIT ${rowsMax})`);
    },
  },
);
