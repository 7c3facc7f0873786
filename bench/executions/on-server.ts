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
    { schema: `bench_${process.pid}_${Date.now()}` },
  );
  try {
    return await body(database);
  } finally {
    await database.close();
    await stopServer?.();
  }
}
