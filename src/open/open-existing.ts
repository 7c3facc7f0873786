import { openPostgresWith } from "../backends/postgres/open.ts";
import { openSqliteWith } from "../backends/sqlite/open.ts";
import type { SqliteDatabase } from "../backends/sqlite/sqlite-database.ts";
import type { Database } from "../sql/database.ts";
import type { Holdfast } from "../runtime/client/holdfast.ts";
import { storePages, type StorePages } from "../runtime/client/store-pages.ts";
import {
  holdfastOn,
  isPostgresUrl,
  storeOptionsOf,
  type HoldfastOptions,
} from "./open-holdfast.ts";

/** What somebody sees who only looks. */
export interface ReadableHoldfast {
  readonly database: Database;
  /** The same when it is a SQLite file, with what only files can do. */
  readonly file: SqliteDatabase | undefined;
  readonly pages: StorePages;
}

/**
 * Opens a database that an app has made, to look at it: nothing is created,
 * migrated or written. A SQLite file is opened read-only, which is safe beside
 * workers; Postgres has no such thing, so there it is up to the caller.
 *
 * @throws HoldfastError with the codes of docs/errors.md under "Opening"
 */
export async function openForReading(
  pathOrUrl: string,
  options: HoldfastOptions = {},
): Promise<ReadableHoldfast> {
  const file = isPostgresUrl(pathOrUrl)
    ? undefined
    : await openSqliteWith(pathOrUrl, { ...options.sqlite, readOnly: true }, {});
  const database = file ?? (await openCurrentPostgres(pathOrUrl, options));
  return {
    database,
    file,
    pages: storePages(database, storeOptionsOf(options)),
  };
}

/**
 * The same for writing. A database that is missing, or whose tables are not of
 * this version, is refused: an operator's tool must not migrate under the app.
 */
export async function openForWriting(
  pathOrUrl: string,
  options: HoldfastOptions = {},
): Promise<Holdfast> {
  const database: Database = isPostgresUrl(pathOrUrl)
    ? await openCurrentPostgres(pathOrUrl, options)
    : await openSqliteWith(pathOrUrl, options.sqlite ?? {}, {
        mustExist: true,
        mustBeCurrent: true,
      });
  try {
    return await holdfastOn(database, storeOptionsOf(options), options.onEvent);
  } catch (error) {
    await database.close();
    throw error;
  }
}

function openCurrentPostgres(url: string, { postgres = {} }: HoldfastOptions): Promise<Database> {
  // One operator needs few connections, and a server has few to give.
  return openPostgresWith(url, { poolSize: 2, ...postgres }, { mustBeCurrent: true });
}
