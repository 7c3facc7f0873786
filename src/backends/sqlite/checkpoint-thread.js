// Plain JavaScript, so that a thread can run it from source and from dist.
import {
  closeSync,
  fdatasyncSync,
  openSync,
  readSync,
  writeSync,
} from "node:fs";
import { createRequire } from "node:module";
import { parentPort, workerData } from "node:worker_threads";
import { isBusy } from "./busy-error.js";
import { logReaders } from "./log-readers.js";

/** The same copy of SQLite as the writer's: file locks are shared only within one. */
function openConnection({ driver, modulePath, path, busyMs }) {
  const loaded = createRequire(import.meta.url)(modulePath);
  const connection =
    driver === "better-sqlite3"
      ? new loaded(path, { timeout: 0 })
      : new loaded.DatabaseSync(path);
  try {
    for (const pragma of [
      `busy_timeout = ${busyMs}`,
      "synchronous = NORMAL",
      "checkpoint_fullfsync = 1",
      "wal_autocheckpoint = 0",
    ])
      connection.exec(`PRAGMA ${pragma}`);
  } catch (error) {
    connection.close();
    throw error;
  }
  return connection;
}

function checkpoint(connection, mode) {
  const { busy, log, checkpointed } = connection
    .prepare(`PRAGMA wal_checkpoint(${mode})`)
    .get();
  return { busy: busy !== 0, log, checkpointed };
}

/**
 * After a restart the first commit syncs the log's new header, whoever makes
 * it. Made here, that sync stays off the event loop.
 */
function touch(connection) {
  connection.prepare("UPDATE holdfast_tick SET n = n + 1").run();
}

/**
 * Writes every byte of the log once more, as it is, and flushes it. After a
 * flush that failed elsewhere the system may hold pages for clean that never
 * reached the disk; this makes them dirty again. The write lock keeps the log
 * from growing or restarting meanwhile.
 */
function rewriteLog(connection, path) {
  connection.exec("BEGIN IMMEDIATE");
  let log;
  try {
    log = openSync(`${path}-wal`, "r+");
    const chunk = Buffer.alloc(1_048_576);
    for (let at = 0; ;) {
      const length = readSync(log, chunk, 0, chunk.length, at);
      if (length === 0) break;
      writeSync(log, chunk, 0, length, at);
      at += length;
    }
    fdatasyncSync(log);
  } finally {
    if (log !== undefined) closeSync(log);
    connection.exec("ROLLBACK");
  }
}

function work(connection, mode) {
  if (mode === "REWRITE") {
    rewriteLog(connection, workerData.path);
    return { busy: false, log: -1, checkpointed: -1 };
  }
  const result = checkpoint(connection, mode);
  if (mode !== "RESTART") return result;
  if (result.busy) return { ...result, readers: logReaders(workerData.path) };
  touch(connection);
  return result;
}

function serve() {
  let connection;
  let frameBytes = 0;
  parentPort.on("message", ({ mode }) => {
    if (mode === "close") {
      connection?.close();
      parentPort.close();
      return;
    }
    let reply;
    try {
      // Opened here, since the first statements may find the file locked too.
      connection ??= openConnection(workerData);
      frameBytes ||=
        connection.prepare("PRAGMA page_size").get().page_size + 24;
      reply = work(connection, mode);
    } catch (error) {
      // Busy comes as an error from some statements; both mean: try later.
      const busy = isBusy(error);
      reply = {
        busy,
        log: -1,
        checkpointed: -1,
        error: busy ? undefined : error.message,
      };
    }
    parentPort.postMessage({ ...reply, frameBytes });
  });
}

if (workerData?.holdfastThread === "checkpoint") serve();
