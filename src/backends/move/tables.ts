/**
 * Tables that stay behind, each with its reason. Every other table of ours is
 * copied, with all columns that the source's catalogue names: one that is
 * added later is copied without a change here.
 */
export const localTables: ReadonlySet<string> = new Set([
  // How each of the two databases came to its schema.
  "holdfast_migration",
  // Says which of the two this is.
  "holdfast_move",
  // Touched when SQLite's log is restarted; it is there in every database.
  "holdfast_tick",
  // Which tables of the app this database has: they are not copied, so with
  // these rows the app would not make them in the target.
  "holdfast_app_migration",
]);

/**
 * Rows that a target may have and still be empty: opening it makes the secret,
 * and the source's takes its place, so that tokens given out before still count.
 */
export const replacedTables: ReadonlySet<string> = new Set(["holdfast_await_secret"]);

export interface MovedTable {
  readonly name: string;
  readonly columns: readonly string[];
}
