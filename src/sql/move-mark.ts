import { HoldfastError } from "../model/errors.ts";
import { plainOperation, row, run } from "./operation.ts";
import type { Operation, Tx } from "./operation.ts";
import { sql } from "./statement.ts";

/**
 * The mark of a move from SQLite to Postgres, in the one row of holdfast_move.
 * A source is `moving` from before the first row is copied, and `moved` for
 * good; a target is `awaited` by a source and, with the copy, has `arrived`.
 */
export interface MoveMark {
  /** Names the move, in the source and in its target alike. */
  readonly move: string;
  readonly state: "moving" | "moved" | "awaited" | "arrived";
  readonly at: number;
  /** What was copied, as JSON, once it has arrived. */
  readonly report: string | null;
}

export function* moveMark(): Tx<MoveMark | undefined> {
  return yield* row<MoveMark>(sql`SELECT move, state, at, report FROM holdfast_move WHERE id = 1`);
}

/** Sets or replaces the mark. Workers listen for it by this name, so that one left behind stops at once. */
export const setMoveMark: Operation<MoveMark, void> = plainOperation("moveDatabase", {
  key: () => "move",
  *one({ move, state, at, report }) {
    yield* run(sql`
        INSERT INTO holdfast_move (id, move, state, at, report)
        VALUES (1, ${move}, ${state}, ${at}, ${report})
        ON CONFLICT (id) DO UPDATE
        SET move = excluded.move, state = excluded.state, at = excluded.at, report = excluded.report`);
  },
});

/** The source is to be used again, or the target for another source. */
export function* clearMoveMark(): Tx<void> {
  yield* run(sql`DELETE FROM holdfast_move WHERE id = 1`);
}

/**
 * Asked inside every transaction that writes, so that nothing is written
 * behind a copy.
 * @throws HoldfastError `MOVED_TO_POSTGRES`
 */
export function* refuseMoved(): Tx<void> {
  const mark = yield* moveMark();
  if (mark?.state === "moving" || mark?.state === "moved") throw movedToPostgres(mark);
}

/** The target is not named: its URL may hold a password, so it is not kept. */
export function movedToPostgres({ state, at }: MoveMark): HoldfastError {
  const since = new Date(at).toISOString();
  return new HoldfastError(
    "MOVED_TO_POSTGRES",
    state === "moved"
      ? `This SQLite database was moved to Postgres (${since}) and takes no more writes; nothing was written. ` +
          "Open the Postgres database in its place: give its URL where this path is given, and restart. It can still be looked at: `holdfast list --db <path>`, or openSqlite(path, { readOnly: true })."
      : `This SQLite database is being moved to Postgres (since ${since}) and takes no writes meanwhile; nothing was written. ` +
          "When the move is done, restart with the URL of the Postgres database. If it was interrupted, run `holdfast migrate` again with the same target, or give it up with --give-up.",
    { state, at },
  );
}
