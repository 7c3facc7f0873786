import { integersOf, keysOf } from "../../sql/dialect.ts";
import { rows, run } from "../../sql/operation.ts";
import type { Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";

/**
 * Removes at most so many rows of a deleted session's queue and of what it
 * remembers; fewer means that nothing is left.
 */
export function* forgetQueue(sessionKey: number, rowsMax: number): Tx<number> {
  let removed = yield* run(sql`
    DELETE FROM holdfast_queue_item WHERE key IN (
      SELECT i.key FROM (
        SELECT key FROM holdfast_queue_batch WHERE ${keysOf(sessionKey, 0)} ORDER BY session, key LIMIT ${rowsMax}) AS b
      JOIN holdfast_queue_item i ON i.batch = b.key LIMIT ${rowsMax})`);
  // Only when the items of these first batches are gone, since they are found through them.
  if (removed < rowsMax)
    removed += yield* run(sql`
      DELETE FROM holdfast_queue_batch WHERE key IN (
        SELECT key FROM holdfast_queue_batch WHERE ${keysOf(sessionKey, 0)} ORDER BY session, key LIMIT ${rowsMax - removed})`);
  if (removed < rowsMax)
    removed += yield* run(sql`
      DELETE FROM holdfast_queue_consumed WHERE session = ${sessionKey} AND source_key IN (
        SELECT source_key FROM holdfast_queue_consumed WHERE session = ${sessionKey} ORDER BY source_key LIMIT ${rowsMax - removed})`);
  if (removed < rowsMax)
    removed += yield* run(sql`
      DELETE FROM holdfast_queue_wake_mark WHERE session = ${sessionKey} AND process IN (
        SELECT process FROM holdfast_queue_wake_mark WHERE session = ${sessionKey} ORDER BY process LIMIT ${rowsMax - removed})`);
  if (removed < rowsMax)
    removed += yield* run(sql`
      DELETE FROM holdfast_queue_completed WHERE session = ${sessionKey} AND number IN (
        SELECT number FROM holdfast_queue_completed WHERE session = ${sessionKey} ORDER BY number LIMIT ${rowsMax - removed})`);
  return removed;
}

/** Removes at most so many queued wakes of a deleted session, and tells how many; fewer means that none are left. */
export function* forgetWakes(
  sessionKey: number,
  batchesMax: number,
): Tx<number> {
  const found = yield* rows<{ readonly key: number }>(sql`
    SELECT key FROM holdfast_queue_batch
    WHERE session = ${sessionKey} AND process IS NOT NULL ORDER BY key LIMIT ${batchesMax}`);
  if (found.length === 0) return 0;
  const keys = integersOf(found.map(({ key }) => key));
  yield* run(sql`DELETE FROM holdfast_queue_item WHERE batch IN ${keys}`);
  return yield* run(sql`DELETE FROM holdfast_queue_batch WHERE key IN ${keys}`);
}
