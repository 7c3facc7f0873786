import { openPostgres } from "../../src/postgres.ts";
import type { Database } from "../../src/sql/database.ts";
import startServer from "../../test/global-setup.ts";

/** A database of its own in the server of the tests, which is stopped afterwards. */
export function onServer<T>(body: (database: Database) => Promise<T>): Promise<T> {
  return atServer(async (url, schema) => {
    const database = await openPostgres(url, { schema });
    try {
      return await body(database);
    } finally {
      await database.close();
    }
  });
}

/** The same for those who open it themselves. */
export async function atServer<T>(body: (url: string, schema: string) => Promise<T>): Promise<T> {
  const stopServer = await startServer();
  // Named as what is removed from a server of your own at the end.
  const schema = `${process.env["HOLDFAST_TEST_SPARES"]}${process.pid}`;
  const url = new URL(process.env["HOLDFAST_TEST_POSTGRES_URL"] ?? "");
  // Tables of a benchmark's own go there too, so that another run makes its own.
  url.searchParams.set("search_path", schema);
  try {
    return await body(url.href, schema);
  } finally {
    await stopServer?.();
  }
}
