// Plain JavaScript, so that a thread can run it from source and from dist.
import { createRequire } from "node:module";
import { parentPort, workerData } from "node:worker_threads";

/** The same copy of SQLite as the writer's: file locks are shared only within one. */
function openConnection({ driver, modulePath, path, busyMs }) {
  const loaded = createRequire(import.meta.url)(modulePath);
  const connection =
    driver === "better-sqlite3"
      ? new loaded(path, { timeout: 0 })
      : new loaded.DatabaseSync(path);
  for (const pragma of [
    `busy_timeout = ${busyMs}`,
    "synchronous = NORMAL",
    "checkpoint_fullfsync = 1",
    "wal_autocheckpoint = 0",
  ])
    connection.exec(`PRAGMA ${pragma}`);
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

function serve() {
  const connection = openConnection(workerData);
  const frameBytes =
    connection.prepare("PRAGMA page_size").get().page_size + 24;
  parentPort.on("message", ({ mode }) => {
    if (mode === "close") {
      connection.close();
      parentPort.close();
      return;
    }
    const startedMs = performance.now();
    let reply;
    try {
      const result = checkpoint(connection, mode);
      if (mode === "RESTART" && !result.busy) touch(connection);
      reply = { ...result, frameBytes };
    } catch (error) {
      // Busy comes as an error from some statements; both mean: try later.
      const code =
        error.errcode !== undefined ? error.errcode & 0xff : error.code;
      const busy = code === 5 || String(code).startsWith("SQLITE_BUSY");
      reply = {
        busy,
        log: -1,
        checkpointed: -1,
        frameBytes,
        error: busy ? undefined : error.message,
      };
    }
    parentPort.postMessage({
      ...reply,
      elapsedMs: performance.now() - startedMs,
    });
  });
}

if (workerData?.holdfastThread === "checkpoint") serve();
