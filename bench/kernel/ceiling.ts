import { closeSync, fdatasyncSync, openSync } from "node:fs";
import { loadDriver } from "../../src/backends/sqlite/drivers/drivers.ts";
import { payload } from "./load.ts";

/**
 * The same statements, prepared by hand, in a plain loop: what SQLite itself
 * can do here with so many rows in a commit and one flush after each.
 * Answers with operations per second.
 */
export function handWrittenLoop(options: {
  readonly path: string;
  readonly operations: number;
  readonly heads: number;
  readonly rowsPerCommit: number;
  /** `full` lets SQLite flush inside each COMMIT; otherwise we do after it. */
  readonly synchronous: "full" | "normal";
}): number {
  const connection = loadDriver(undefined).open(options.path, {
    readOnly: false,
  });
  connection.exec("PRAGMA journal_mode = WAL");
  connection.exec(`PRAGMA synchronous = ${options.synchronous}`);
  connection.exec("PRAGMA wal_autocheckpoint = 0");
  connection.exec("PRAGMA cache_size = -16384");
  connection.exec(`
    CREATE TABLE app_log_head (key INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL, version INTEGER NOT NULL) STRICT;
    CREATE UNIQUE INDEX app_log_head_id ON app_log_head (id);
    CREATE TABLE app_log (
      seq INTEGER PRIMARY KEY AUTOINCREMENT, head INTEGER NOT NULL, version INTEGER NOT NULL,
      payload TEXT NOT NULL CONSTRAINT app_log_payload CHECK (payload <> 'refused')) STRICT;
    CREATE UNIQUE INDEX app_log_version ON app_log (head, version);`);
  const insertHead = connection.prepare("INSERT INTO app_log_head (id, version) VALUES (?, 0)");
  for (let index = 0; index < options.heads; index += 1) insertHead.run(`bench-${index}`);

  const begin = connection.prepare("BEGIN IMMEDIATE");
  const commit = connection.prepare("COMMIT");
  const advance = connection.prepare(
    "UPDATE app_log_head SET version = version + 1 WHERE key = ? AND version = ? RETURNING version",
  );
  const append = connection.prepare(
    "INSERT INTO app_log (head, version, payload) VALUES (?, ?, ?)",
  );
  const versions = new Array<number>(options.heads).fill(0);
  const log = openSync(`${options.path}-wal`, "r+");

  const startedMs = performance.now();
  for (let done = 0; done < options.operations;) {
    begin.run();
    for (
      let inBatch = 0;
      inBatch < options.rowsPerCommit && done < options.operations;
      inBatch += 1, done += 1
    ) {
      const head = done % options.heads;
      const version = versions[head] ?? 0;
      advance.all(BigInt(head + 1), BigInt(version));
      append.run(BigInt(head + 1), BigInt(version + 1), payload);
      versions[head] = version + 1;
    }
    commit.run();
    if (options.synchronous === "normal") fdatasyncSync(log);
  }
  const elapsedMs = performance.now() - startedMs;
  closeSync(log);
  connection.close();
  return (options.operations * 1_000) / elapsedMs;
}
