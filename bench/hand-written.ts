import { closeSync, fdatasyncSync, openSync } from "node:fs";
import { loadDriver } from "../src/backends/sqlite/drivers/drivers.ts";
import type { RawConnection } from "../src/backends/sqlite/drivers/drivers.ts";

/**
 * What SQLite itself can do with our tables: statements prepared by hand, in a
 * plain loop, so many times per transaction and with one flush each. Answers
 * with how many times per second.
 */
export function handWritten(
  path: string,
  times: { readonly inAll: number; readonly perTransaction: number },
  prepared: (connection: RawConnection) => (index: number) => void,
): number {
  const connection = loadDriver(undefined).open(path, { readOnly: false });
  connection.exec("PRAGMA synchronous = normal");
  connection.exec("PRAGMA wal_autocheckpoint = 0");
  connection.exec("PRAGMA cache_size = -16384");
  const begin = connection.prepare("BEGIN IMMEDIATE");
  const commit = connection.prepare("COMMIT");
  const write = prepared(connection);
  // So that there is a log to flush.
  connection.exec("UPDATE holdfast_tick SET n = n + 1");
  const log = openSync(`${path}-wal`, "r+");

  const startedMs = performance.now();
  for (let done = 0; done < times.inAll;) {
    begin.run();
    const end = Math.min(done + times.perTransaction, times.inAll);
    for (; done < end; done += 1) write(done);
    commit.run();
    fdatasyncSync(log);
  }
  const elapsedMs = performance.now() - startedMs;
  closeSync(log);
  connection.close();
  return (times.inAll * 1_000) / elapsedMs;
}
