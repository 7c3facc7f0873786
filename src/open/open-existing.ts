import { openPostgresWith } from "../backends/postgres/open.ts";
import { openSqliteWith } from "../backends/sqlite/open.ts";
import type { SqliteDatabase } from "../backends/sqlite/sqlite-database.ts";
import type { HoldfastError } from "../model/errors.ts";
import { sealedView } from "../model/values/payload-mark.ts";
import type { Database } from "../sql/database.ts";
import { payloadSeal } from "../stores/payload-seal.ts";
import type { Holdfast } from "../runtime/client/holdfast.ts";
import { storePages, type StorePages } from "../runtime/client/store-pages.ts";
import {
  holdfastOn,
  isPostgresUrl,
  storeOptionsOf,
  type HoldfastOptions,
} from "./open-holdfast.ts";

/** A database opened only for reading. */
export interface ReadableHoldfast {
  readonly database: Database;
  /** The same database when it is a SQLite file, with the members that only files have. */
  readonly file: SqliteDatabase | undefined;
  /** Without the database's codec, pages show values as "sealed". */
  readonly pages: StorePages;
  /** The reason why values are sealed; undefined when they are not. */
  readonly sealed: HoldfastError | undefined;
}

/**
 * Opens an existing database for inspection, without creating, migrating or writing anything. A
 * SQLite file is opened read-only, which is safe beside workers. Postgres has no such mode, so
 * there the caller must not write.
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
  const stores = storeOptionsOf(options);
  const sealed = payloadSeal(database, stores.payload).refusal;
  return {
    database,
    file,
    pages: storePages(database, sealed === undefined ? stores : { ...stores, payload: sealedView }),
    sealed,
  };
}

/**
 * Opens an existing database for writing. Refuses a missing database, and one whose schema is not
 * this version's, because an operator's tool must not migrate under the app.
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
  // One operator needs few connections, and a server has few to spare.
  return openPostgresWith(url, { poolSize: 2, ...postgres }, { mustBeCurrent: true });
}
