import { sha256Hex } from "../../host/hash.ts";
import type { OwnerId } from "../../model/ids/prefixed-id.ts";
import { row } from "../../sql/operation.ts";
import type { Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import type { Connection } from "./connection.ts";

/**
 * Takes a lock in the server that lives as long as its session. It is shared, so that a process
 * whose connection broke gets it again at once, before the server has noticed that the old session
 * is gone.
 */
export async function holdOwnerLock(connection: Connection, owner: OwnerId): Promise<void> {
  const [first, second] = lockNumbers(owner);
  await connection.query(sql`SELECT pg_advisory_lock_shared(${first}::int4, ${second}::int4)`);
}

/**
 * True when a session has the owner's lock. Asking takes no lock, so it blocks no other session.
 */
export function* isOwnerLockHeld(owner: OwnerId): Tx<boolean> {
  const [first, second] = lockNumbers(owner);
  const found = yield* row(sql`
    SELECT 1 AS one FROM pg_locks
    WHERE locktype = 'advisory' AND granted AND objsubid = 2
      AND classid = ${first}::int4::oid AND objid = ${second}::int4::oid
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    LIMIT 1`);
  return found !== undefined;
}

function lockNumbers(owner: OwnerId): readonly [number, number] {
  const hash = Buffer.from(sha256Hex(`holdfast owner ${owner}`), "hex");
  return [hash.readInt32BE(0), hash.readInt32BE(4)];
}
