import { HoldfastError } from "../model/errors.ts";
import { plainOperation, row, run, type Tx } from "./operation.ts";
import { sql } from "./statement.ts";

/**
 * The mark of a move from SQLite to Postgres, in the only row of holdfast_move. A source is
 * `moving` from before the first row is copied, and later `moved` forever. A target is `awaited` by
 * a source, and has `arrived` once the copy is complete.
 */
export interface MoveMark {
  /** The id of the move, equal in its source and its target. */
  readonly move: string;
  readonly state: "moving" | "moved" | "awaited" | "arrived";
  readonly at: number;
  /** A report of the copied rows as JSON, once the move has arrived. */
  readonly report: string | null;
}

export function* moveMark(): Tx<MoveMark | undefined> {
  return yield* row<MoveMark>(sql`SELECT move, state, at, report FROM holdfast_move WHERE id = 1`);
}

/**
 * Sets or replaces the mark. Workers listen for this operation by name, so a worker left on the
 * source stops at once.
 */
export const setMoveMark = plainOperation("moveDatabase", {
  key: () => "move",
  *one({ move, state, at, report }: MoveMark): Tx<void> {
    yield* run(sql`
      INSERT INTO holdfast_move (id, move, state, at, report)
      VALUES (1, ${move}, ${state}, ${at}, ${report})
      ON CONFLICT (id) DO UPDATE
      SET move = excluded.move, state = excluded.state, at = excluded.at, report = excluded.report`);
  },
});

/** Frees the source for further use, or the target for another source. */
export function* clearMoveMark(): Tx<void> {
  yield* run(sql`DELETE FROM holdfast_move WHERE id = 1`);
}

/**
 * Refuses writes to a moved database. Every writing transaction checks it, so that no write happens
 * behind the copy.
 * @throws HoldfastError `MOVED_TO_POSTGRES`
 */
export function* refuseMoved(): Tx<void> {
  const mark = yield* moveMark();
  if (mark?.state === "moving" || mark?.state === "moved") throw movedToPostgres(mark);
}

/** The error does not name the target: its URL may contain a password, so it is not stored. */
export function movedToPostgres({ state, at }: MoveMark): HoldfastError {
  const since = new Date(at).toISOString();
  return new HoldfastError(
    "MOVED_TO_POSTGRES",
    state === "moved"
      ? `This SQLite database was moved to Postgres (${since}) and takes no more writes; nothing was written. ` +
          "Open the Postgres database in its place: pass its URL instead of this path, and restart. It can still be read: `npx holdfast list --db <path>`, or openSqlite(path, { readOnly: true })."
      : `This SQLite database is being moved to Postgres (since ${since}) and takes no writes until the move ends; nothing was written. ` +
          "When the move is done, restart with the URL of the Postgres database. If it was interrupted, run `npx holdfast migrate` again with the same target, or abandon it with --give-up.",
    { state, at },
  );
}
