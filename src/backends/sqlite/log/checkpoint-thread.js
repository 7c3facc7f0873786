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

/**
 * Opens the same copy of SQLite as the writer's, since file locks are shared only within one copy.
 */
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
 * Cuts off the log before a hole. A checkpoint would copy the hole into the database file.
 * Everything behind the hole is lost. With the log ending before it, checkpoints fail and do no
 * harm, also those that SQLite makes when a connection closes.
 */
function closeHole(connection, path, known) {
  // Only SQLite creates the log, with the first statement that needs it.
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
 * Takes the write lock, under which no process writes, restarts or empties the log. To take it
 * SQLite reads the first page. If that page is in the hole, no process can take the lock, so the
 * log stays unchanged as well. If the lock is merely busy, no checkpoint is made.
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

/** True for SQLITE_CORRUPT and SQLITE_NOTADB, as either driver reports them. */
function isUnreadable({ code, errcode }) {
  return [11, 26].includes(errcode & 0xff) || /^SQLITE_(CORRUPT|NOTADB)/.test(String(code));
}

/** The part of the log that was whole at the last checkpoint. */
const known = {};

function checkpoint(connection, mode) {
  closeHole(connection, workerData.path, known);
  const { busy, log, checkpointed } = connection.prepare(`PRAGMA wal_checkpoint(${mode})`).get();
  return { busy: busy !== 0, log, checkpointed };
}

/**
 * Changes one row after a restart. The first commit then syncs the log's new header, in whichever
 * process it happens. Made here, that sync stays off the event loop.
 */
function touch(connection) {
  connection.prepare("UPDATE holdfast_tick SET n = n + 1").run();
}

/**
 * Rewrites every byte of the log unchanged, and flushes it. After a flush failed elsewhere, the
 * system may consider pages clean that never reached the disk; this makes them dirty again. The
 * write lock keeps the log from growing or restarting.
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
 * Runs some statements of a transaction that the other side drives, which is how opening sets up
 * the file. No statement runs after a failed one, since SQLite may have ended the transaction with
 * it.
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

/** The delay before a log that looks cut short is read again: a frame may be in progress. */
const secondLookMs = 20;

/**
 * Looks for transactions behind a damaged place before the log is restarted, and keeps a copy of
 * the log, because the restart overwrites it.
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
