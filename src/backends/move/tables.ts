/**
 * Tables that are not copied, each with its reason. Every other table of ours is copied with all
 * columns of the source's catalogue, so a table added later is copied without a change here.
 */
export const localTables: ReadonlySet<string> = new Set([
  // The history of each database's schema.
  "holdfast_migration",
  // Marks which of the two databases this is.
  "holdfast_move",
  // Updated when SQLite's log is restarted. Every database has one.
  "holdfast_tick",
  // Lists the app's tables in this database, which are not copied. With these rows in the target,
  // the app would not create them there.
  "holdfast_app_migration",
  // Live output, which is no part of the record: a reader in the target gets a gap.
  "holdfast_stream",
  "holdfast_stream_part",
]);

/**
 * Tables whose rows an empty target may have: opening it creates the secret and the row of the
 * payload codec, and a worker that looks for work creates the rows under which limits are counted.
 * The source's rows replace them, so existing tokens stay valid and values use the same codec.
 */
export const replacedTables: ReadonlySet<string> = new Set([
  "holdfast_await_secret",
  "holdfast_payload_codec",
  "holdfast_execution_limit",
]);

export interface MovedTable {
  readonly name: string;
  readonly columns: readonly string[];
}
