import type { LeaseFence } from "../../model/lease.ts";
import type { Database } from "../../sql/database.ts";

/**
 * Who keeps a lease through a database, by the token of the lease. A keeper
 * also finds out by itself, but only at its next renewal: by then the session
 * may be deleted or the database closed, and that would look like a loss.
 */
const keepers = new WeakMap<Database, Map<string, Set<() => void>>>();

/** Calls `end` once the lease is given back through this database; the function returned stops that. */
export function whenGivenBack(
  database: Database,
  { token }: LeaseFence,
  end: () => void,
): () => void {
  const byToken = keepers.get(database) ?? new Map<string, Set<() => void>>();
  keepers.set(database, byToken);
  const ends = byToken.get(token) ?? new Set();
  byToken.set(token, ends);
  ends.add(end);
  return () => {
    ends.delete(end);
    if (ends.size === 0 && byToken.get(token) === ends) byToken.delete(token);
  };
}

/** Tells the keepers of a lease that its holder gave it back. */
export function tellGivenBack(database: Database, { token }: LeaseFence): void {
  for (const end of keepers.get(database)?.get(token) ?? []) end();
}
