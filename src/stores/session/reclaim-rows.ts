import { keysOf } from "../../sql/dialect.ts";
import { row, rows, run } from "../../sql/operation.ts";
import type { Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import type { Statement } from "../../sql/statement.ts";

/**
 * Removes rows of a session other than its nodes; fewer than asked for means
 * that none is left. Tells which blobs they referred to.
 */
export function* removeRowsOf(
  session: number,
  rowsMax: number,
): Tx<{ readonly rows: number; readonly hashes: readonly string[] }> {
  const blobs = yield* rows<{ readonly blob: string }>(sql`
    SELECT blob FROM holdfast_session_component WHERE session = ${session}
    UNION
    SELECT blob FROM holdfast_session_frame WHERE session = ${session} AND blob IS NOT NULL`);
  // A host has few of these, so they go at once.
  let removed = yield* run(sql`
    DELETE FROM holdfast_session_component WHERE session = ${session}`);
  removed += yield* run(sql`
    DELETE FROM holdfast_session_frame WHERE session = ${session}`);
  const left = (): number => Math.max(0, rowsMax - removed);
  const marked = yield* firstPast(
    sql`SELECT node AS n FROM holdfast_session_tombstone WHERE session = ${session} ORDER BY node`,
    left(),
  );
  removed += yield* run(sql`
    DELETE FROM holdfast_session_tombstone WHERE session = ${session} AND node < ${marked}`);
  const used = yield* firstPast(
    sql`SELECT key AS n FROM holdfast_session_usage WHERE ${keysOf(session, 0)} ORDER BY session, key`,
    left(),
  );
  removed += yield* run(sql`
    DELETE FROM holdfast_session_usage WHERE ${keysOf(session, 0, used - 1)}`);
  const turn = yield* row<{ readonly turn: string }>(sql`
    SELECT turn FROM holdfast_session_turn WHERE session = ${session} ORDER BY turn LIMIT 1 OFFSET ${left()}`);
  removed += yield* run(
    turn === undefined
      ? sql`DELETE FROM holdfast_session_turn WHERE session = ${session}`
      : sql`DELETE FROM holdfast_session_turn WHERE session = ${session} AND turn < ${turn.turn}`,
  );
  return { rows: removed, hashes: blobs.map(({ blob }) => blob) };
}

/** The first number past so many rows; beyond all of them when there are fewer. */
function* firstPast(ordered: Statement, rowsMax: number): Tx<number> {
  const found = yield* row<{ readonly n: number }>(
    sql`${ordered} LIMIT 1 OFFSET ${rowsMax}`,
  );
  return found?.n ?? Number.MAX_SAFE_INTEGER;
}
