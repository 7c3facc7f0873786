import type { Database } from "../../sql/database.ts";
import type { CheckReport } from "./heavy/check.ts";
import type { RowPage } from "./heavy/export-rows.ts";
import type { HeavyOptions } from "./heavy/heavy-call.ts";
import type { CheckOptions, RowsOptions } from "./heavy/heavy-reads.ts";
import type { StoredSize } from "./heavy/sizes.ts";

/**
 * What a database in a file can do beside what every database can. These reads
 * run off the event loop and beside writers, change nothing, and can be given
 * up; in memory they are refused with `DATABASE_PATH_INVALID`.
 */
export interface SqliteDatabase extends Database {
  /**
   * Looks for damage. Quick: our tables, each in a snapshot of its own; the
   * app's are named in `skipped`. Full: every page of the file, the app's
   * included, in one snapshot that pins the log while it lasts. Progress counts
   * tables. Damage is a finding, not an error.
   * @example const { ok, problems } = await database.check({ full: true });
   */
  check(options?: CheckOptions): Promise<CheckReport>;

  /**
   * Copies the database to a new file, as it is at one moment after the call,
   * and resolves when the copy and all it holds are durable. It replaces
   * nothing, and unless it resolves nothing is left. Progress counts bytes,
   * against an estimate until the end. A signal or timeout ends it at any
   * moment but the last, when the copy gets its name.
   *
   * It is one snapshot, however long it takes: meanwhile the log cannot be
   * restarted and grows with every write. Rows of tables without an INTEGER
   * PRIMARY KEY may have other rowids in the copy.
   * @throws HoldfastError `TARGET_EXISTS`, `TARGET_INVALID`, `TARGET_BUSY`, `DISK_FULL`, `BACKUP_FAILED`.
   * @example const { bytes } = await database.backup("/mnt/backups/monday.db");
   */
  backup(to: string, options?: HeavyOptions): Promise<{ readonly bytes: number }>;

  /**
   * Streams a table in the order of its key, a page when it is asked for. Each
   * page is a snapshot of its own, and durable: under load a stream is no
   * picture of one moment, but holds every row that was there all the while
   * with an unchanged key. Damaged rows are named and passed over.
   * @throws HoldfastError `TABLE_UNKNOWN`, `OPTION_INVALID` before anything is
   *   read, and `DATABASE_DAMAGED` where SQLite cannot read on.
   * @example
   * for await (const page of database.exportRows("account"))
   *   for (const account of page.rows) console.log(JSON.stringify(account));
   */
  exportRows(table: string, options?: RowsOptions): AsyncGenerator<RowPage, void, undefined>;

  /**
   * What each table and index of the file takes, in bytes and rows, the app's
   * included. Progress counts them. Each is measured in a snapshot of its own,
   * so under load sums may disagree.
   */
  sizes(options?: HeavyOptions): Promise<readonly StoredSize[]>;
}
