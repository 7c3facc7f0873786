// Plain JavaScript, embedded as a text by `npm run threads`.
import {
  closeSync,
  constants,
  copyFileSync,
  existsSync,
  fdatasyncSync,
  ftruncateSync,
  openSync,
  readSync,
  writeSync,
} from "node:fs";
import { parentPort, workerData } from "node:worker_threads";
import { findHole } from "./cut-files.js";
import { findCut } from "./log-file.js";
import { logReaders } from "./log-holders.js";
import { loadModule } from "../drivers/load-module.js";

/** The same copy of SQLite as the writer's: file locks are shared only within one. */
function openConnection({ driver, modulePath, path, busyMs }) {
  const loaded = loadModule(modulePath);
  const connection =
    driver === "better-sqlite3" ? new loaded(path, { timeout: 0 }) : new loaded.DatabaseSync(path);
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

/**
 * A checkpoint would copy a hole of the log into the database file. What lies
 * behind the hole is lost; with the log ending before it, checkpoints fail and
 * harm nothing, also those that SQLite makes when a connection closes.
 */
function closeHole(connection, path, known) {
  // Only SQLite makes the log, by the first statement that needs it.
  if (!existsSync(`${path}-wal`)) return;
  const log = openSync(`${path}-wal`, "r+");
  try {
    if (findHole(log, known) === undefined) return;
    const unlock = keepWritersOut(connection);
    try {
      const end = findHole(log);
      if (end !== undefined) ftruncateSync(log, end);
    } finally {
      unlock();
    }
  } finally {
    closeSync(log);
  }
}

/**
 * Under the write lock nobody writes, restarts or empties the log. To take it
 * SQLite reads the first page: when that is in the hole nobody can take it,
 * and the log is left alone as well. While it is merely busy, no checkpoint is
 * made.
 */
function keepWritersOut(connection) {
  try {
    connection.exec("BEGIN IMMEDIATE");
  } catch (error) {
    if (!isUnreadable(error)) throw error;
    return () => undefined;
  }
  return () => connection.exec("ROLLBACK");
}

/** SQLITE_CORRUPT and SQLITE_NOTADB, as either driver tells them. */
function isUnreadable({ code, errcode }) {
  return [11, 26].includes(errcode & 0xff) || /^SQLITE_(CORRUPT|NOTADB)/.test(String(code));
}

/** What was found whole of the log at the last checkpoint. */
const known = {};

function checkpoint(connection, mode) {
  closeHole(connection, workerData.path, known);
  const { busy, log, checkpointed } = connection.prepare(`PRAGMA wal_checkpoint(${mode})`).get();
  return { busy: busy !== 0, log, checkpointed };
}

/**
 * After a restart the first commit syncs the log's new header, whichever process makes
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

/**
 * Some statements of a transaction that the other side drives: opening sets
 * up the file so. None runs after one that failed, since SQLite may have ended
 * the transaction with it.
 * @returns the rows of the last one.
 */
function execute(connection, { statements }) {
  let rows = [];
  for (const { text, parameters, returnsRows } of statements) {
    const statement = connection.prepare(text);
    if (returnsRows) rows = statement.all(...parameters);
    else statement.run(...parameters);
  }
  return rows;
}

/** How long a log that looks cut short is left alone: a frame may be in the making. */
const secondLookMs = 20;

/**
 * Looks for transactions behind a damaged place before the log is restarted,
 * and keeps a copy of it: afterwards it would be written over.
 */
function inspectLog(path) {
  const log = openSync(`${path}-wal`, "r");
  try {
    const cut = findCut(log);
    if (cut === undefined) return undefined;
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, secondLookMs);
    const again = findCut(log);
    if (again?.bad !== cut.bad || again.kept !== cut.kept) return undefined;
    return { ...again, ...keepCopy(path) };
  } finally {
    closeSync(log);
  }
}

function keepCopy(path) {
  const copy = `${path}-wal-cut-short`;
  try {
    copyFileSync(`${path}-wal`, copy, constants.COPYFILE_EXCL);
    return { copy };
  } catch (error) {
    return { copy, notKept: error.code ?? error.message };
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

function failureOf(error) {
  return {
    message: String(error?.message ?? error),
    code: error?.code,
    errcode: error?.errcode,
  };
}

function serve() {
  let connection;
  let frameBytes = 0;
  // Opened when first needed, since the first statements may find the file locked too.
  const opened = () => (connection ??= openConnection(workerData));
  const jobs = {
    INSPECT: () => ({ value: inspectLog(workerData.path) }),
    EXECUTE: (request) => ({ value: execute(opened(), request) }),
  };
  const checkpointed = ({ mode }) => {
    opened();
    frameBytes ||= connection.prepare("PRAGMA page_size").get().page_size + 24;
    return { ...work(connection, mode), frameBytes };
  };
  parentPort.on("message", (request) => {
    if (request.mode === "close") {
      connection?.close();
      parentPort.close();
      return;
    }
    try {
      const job = jobs[request.mode] ?? checkpointed;
      parentPort.postMessage(job(request));
    } catch (error) {
      parentPort.postMessage({ frameBytes, failure: failureOf(error) });
    }
  });
}

serve();
