import type { Clock, Duration, Database } from "../../src/kernel.ts";

/** Whether a child is told of a schema in a server, and not of a file. */
export function isOnServer(place: string): boolean {
  return place.startsWith("postgres");
}

/**
 * A lease for workers that are killed. On a server it has to run out before
 * others go on. On a file a death is proven, and a short one would only end
 * while its worker lives and the machine is slow.
 */
export function leaseOn(place: string, onServer: Duration): Duration {
  return isOnServer(place) ? onServer : "1m";
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
