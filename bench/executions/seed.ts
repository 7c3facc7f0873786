import { closeSync, fsyncSync, openSync } from "node:fs";
import { loadDriver } from "../../src/backends/sqlite/drivers/drivers.ts";
import { openSqlite } from "../../src/sqlite.ts";

/** Fills a new database by plain SQL, without the store: a million rows in seconds. */
export async function seeded(path: string, statements: readonly string[]): Promise<void> {
  await (await openSqlite(path)).close();
  const connection = loadDriver(undefined).open(path, { readOnly: false });
  connection.exec("PRAGMA synchronous = off");
  connection.exec("PRAGMA cache_size = -262144");
  for (const statement of statements) {
    connection.exec("BEGIN");
    connection.exec(statement);
    connection.exec("COMMIT");
  }
  connection.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  connection.close();
  // Else the system writes it out while others are measured.
  const file = openSync(path, "r+");
  fsyncSync(file);
  closeSync(file);
}

/** 1 … count as `i`, for the FROM of an INSERT … SELECT. */
export function numbers(count: number): string {
  return `WITH RECURSIVE numbers (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM numbers WHERE i < ${count})`;
}

/** Held by the holder of the load, or due: in the order of creation, or in one that jumps about. */
export type SeededState = "locked" | "dueInOrder" | "dueScattered";

const holding =
  "'locked', NULL, 9000000000000, 1, 'Exr_01ARZ3NDEKTSV4RRFFQ69G5FAV', 'Run_01ARZ3NDEKTSV4RRFFQ69G5FAV', 100";
const stateColumns: Readonly<Record<SeededState, string>> = {
  locked: holding,
  dueInOrder: "'pending', i, NULL, NULL, NULL, NULL, NULL",
  dueScattered: "'pending', (i * 7919) % 1000003, NULL, NULL, NULL, NULL, NULL",
};

/** Executions named `old-1` and on, all at one version. */
export function insertExecutions(count: number, version: number, state: SeededState): string {
  return `${numbers(count)}
    INSERT INTO holdfast_execution
      (key, id, role, function, input_hash, created_at, scheduled_at, version, lifecycle, failures, deaths, responses,
       history_from, state, due_at, lease_until, lock_version, executor, run, backoff_ms)
    SELECT i, 'old-' || i, 'workflow', 'bench/steps', 'hash', i, i, ${version}, 'active', 0, 0, 0, 0, ${stateColumns[state]}
    FROM numbers`;
}
