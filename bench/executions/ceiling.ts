import { closeSync, fdatasyncSync, openSync } from "node:fs";
import { loadDriver } from "../../src/backends/sqlite/drivers.ts";
import { holder } from "../../test/fixtures/execution-world.ts";
import type { Target } from "./load.ts";

const body = JSON.stringify({
  name: "charge the card",
  inputHash: null,
  outcome: "completed",
});
const payload = JSON.stringify("x".repeat(80));

/**
 * The same rows and columns by two statements prepared by hand, in a plain
 * loop with one flush per commit: what SQLite itself can do with these tables.
 * Answers with appends per second.
 */
export function handWrittenAppends(options: {
  readonly path: string;
  readonly targets: readonly Target[];
  readonly each: number;
  readonly rowsPerCommit: number;
}): number {
  const { path, targets } = options;
  const connection = loadDriver(undefined).open(path, { readOnly: false });
  connection.exec("PRAGMA synchronous = normal");
  connection.exec("PRAGMA wal_autocheckpoint = 0");
  connection.exec("PRAGMA cache_size = -16384");
  const begin = connection.prepare("BEGIN IMMEDIATE");
  const commit = connection.prepare("COMMIT");
  const advance = connection.prepare(`
    UPDATE holdfast_execution SET version = version + 1, deaths = 0
    WHERE key = ? AND id = ? AND version = ? AND state <> 'finished' AND lifecycle = 'active' AND executor = ? AND run = ?
    RETURNING key, responses`);
  const append = connection.prepare(`
    INSERT INTO holdfast_execution_event
      (execution, version, at, responses, kind, call, seen, inbox, ordinal, body, payload)
    VALUES (?, ?, ?, ?, 'stepFinished', 7, 0, NULL, NULL, ?, ?)`);
  begin.run();
  connection.exec("UPDATE holdfast_tick SET n = n + 1");
  commit.run();
  const log = openSync(`${path}-wal`, "r+");
  const operations = targets.length * options.each;

  const startedMs = performance.now();
  for (let done = 0; done < operations;) {
    begin.run();
    for (
      let inBatch = 0;
      inBatch < options.rowsPerCommit && done < operations;
      inBatch += 1, done += 1
    ) {
      const { id, key, nextVersion } = targets[done % targets.length] as Target;
      const version = nextVersion + Math.floor(done / targets.length);
      const { executor, run } = holder;
      advance.all(BigInt(key), id, BigInt(version - 1), executor, run);
      append.run(
        BigInt(key),
        BigInt(version),
        BigInt(Date.now()),
        0n,
        body,
        payload,
      );
    }
    commit.run();
    fdatasyncSync(log);
  }
  const elapsedMs = performance.now() - startedMs;
  closeSync(log);
  connection.close();
  return (operations * 1_000) / elapsedMs;
}
