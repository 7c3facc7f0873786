import { openPostgres } from "../../src/postgres.ts";
import type { Database } from "../../src/stores/database.ts";
import startServer from "../../test/global-setup.ts";

/** A database of its own in the server of the tests, which is stopped afterwards. */
export async function onServer<T>(
  body: (database: Database) => Promise<T>,
): Promise<T> {
  const stopServer = await startServer();
  const database = await openPostgres(
    process.env["HOLDFAST_TEST_POSTGRES_URL"] ?? "",
    // Named as what is removed from a server of your own at the end.
    { schema: `${process.env["HOLDFAST_TEST_SPARES"]}${process.pid}` },
  );
  try {
    return await body(database);
  } finally {
    await database.close();
    await stopServer?.();
  }
}
