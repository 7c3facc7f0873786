import { lockToEnd } from "../../sql/dialect.ts";
import { row, rows, run, type Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";

/** The live output of an execution as a part of its removal. */

/**
 * Removes up to `rowsMax` rows of an execution's output, and returns their number. A smaller number
 * means that none are left.
 */
export function* removeStream(execution: number, rowsMax: number): Tx<number> {
  const head = yield* row(sql`
    SELECT execution FROM holdfast_stream WHERE execution = ${execution} ${lockToEnd}`);
  if (head === undefined) return 0;
  const past = yield* row<{ readonly position: number }>(sql`
    SELECT position FROM holdfast_stream_part WHERE execution = ${execution}
    ORDER BY position LIMIT 1 OFFSET ${rowsMax}`);
  const removed = yield* rows<{ readonly size: number }>(sql`
    DELETE FROM holdfast_stream_part
    WHERE execution = ${execution} AND position < ${past?.position ?? Number.MAX_SAFE_INTEGER}
    RETURNING size`);
  if (removed.length < rowsMax) {
    yield* run(sql`DELETE FROM holdfast_stream WHERE execution = ${execution}`);
    return removed.length + 1;
  }
  const size = removed.reduce((sum, part) => sum + part.size, 0);
  yield* run(sql`UPDATE holdfast_stream SET size = size - ${size} WHERE execution = ${execution}`);
  return removed.length;
}

/**
 * The same for an erasure, which waits for a transaction that is writing the first output of the
 * run. A write that begins later finds the run finished.
 */
export function* eraseStream(execution: number, rowsMax: number): Tx<number> {
  const added = yield* run(sql`
    INSERT INTO holdfast_stream (execution, id, run_version, position, size)
    VALUES (${execution}, '', 0, 0, 0) ON CONFLICT (execution) DO NOTHING`);
  return (yield* removeStream(execution, rowsMax)) - added;
}
