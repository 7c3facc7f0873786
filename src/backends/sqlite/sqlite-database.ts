import type { Database } from "../../sql/database.ts";
import type { CheckReport } from "./heavy/check.ts";
import type { RowPage } from "./heavy/export-rows.ts";
import type { HeavyOptions } from "./heavy/heavy-call.ts";
import type { CheckOptions, RowsOptions } from "./heavy/heavy-reads.ts";
import type { StoredSize } from "./heavy/sizes.ts";

/**
 * Methods that only a database in a file has. These reads run off the event loop and beside
 * writers, change nothing, and can be given up. In memory they are refused with
 * `DATABASE_PATH_INVALID`.
 */
export interface SqliteDatabase extends Database {
  /**
   * Looks for damage. A quick check reads our tables, each in its own snapshot, and lists the app's
   * tables in `skipped`. A full check reads every page of the file, the app's included, in one
   * snapshot that pins the log until it ends. Progress counts tables. Damage is a finding, not an
   * error.
   * @example const { ok, problems } = await database.check({ full: true });
   */
  check(options?: CheckOptions): Promise<CheckReport>;

  /**
   * Copies the database to a new file, as it is at one moment after the call. Resolves when the
   * copy and all its contents are durable. It replaces nothing, and leaves nothing behind unless it
   * resolves. Progress counts bytes against an estimate until the end. A signal or timeout can end
   * it at any moment but the last, when the copy gets its name.
   *
   * The copy is one snapshot, however long it takes. Until it ends the log cannot be restarted and
   * grows with every write. Rows of tables without an INTEGER PRIMARY KEY may have other rowids in
   * the copy.
   * @throws HoldfastError `TARGET_EXISTS`, `TARGET_INVALID`, `TARGET_BUSY`, `DISK_FULL`,
   * `BACKUP_FAILED`.
   * @example const { bytes } = await database.backup("/mnt/backups/monday.db");
   */
  backup(to: string, options?: HeavyOptions): Promise<{ readonly bytes: number }>;

  /**
   * Streams a table in the order of its key, one page per request. Each page is its own durable
   * snapshot. Under load a stream is not the state of one moment. But it contains every row that
   * existed throughout with an unchanged key. Damaged rows are listed and skipped.
   * @throws HoldfastError `TABLE_UNKNOWN`, `OPTION_INVALID` before anything is
   *   read, and `DATABASE_DAMAGED` where SQLite cannot read further.
   * @example
   * for await (const page of database.exportRows("account"))
   *   for (const account of page.rows) console.log(JSON.stringify(account));
   */
  exportRows(table: string, options?: RowsOptions): AsyncGenerator<RowPage, void, undefined>;

  /**
   * The size of each table and index of the file, in bytes and rows, the app's included. Progress
   * counts them. Each is measured in its own snapshot, so sums may disagree under load.
   */
  sizes(options?: HeavyOptions): Promise<readonly StoredSize[]>;
}
