import type { Clock } from "../../src/model/time/clock.ts";
import type { Database } from "../../src/sql/database.ts";

/** Whether a child is told of a schema in a server, and not of a file. */
export function isOnServer(place: string): boolean {
  return place.startsWith("postgres");
}

/** The database that a child is told of: the path of a file, or the URL of a server with the schema behind "#". */
export async function openTold(
  place: string,
  options: { readonly clock?: Clock } = {},
): Promise<Database> {
  if (!isOnServer(place)) {
    const { openSqlite } = await import("../../src/sqlite.ts");
    const { driverName } = await import("../sqlite/place.ts");
    return openSqlite(place, { driver: driverName, ...options });
  }
  const { openPostgres } = await import("../../src/postgres.ts");
  const [url = "", schema = ""] = place.split("#");
  return openPostgres(url, { schema, poolSize: 2, ...options });
}
