// Plain JavaScript, run by the thread that flushes and by its caller.
import { fdatasyncSync, statSync } from "node:fs";
import { noteDatabase, noteLog } from "../log/cut-files.js";

/**
 * Flushes the log and proves that it is whole and still the database's. A flush of an unlinked log
 * succeeds and saves nothing. A database that was moved away would be opened elsewhere without the
 * log. A part that was cut off from either file is lost, however well the rest is flushed. While
 * the log is open here, no other file can have its inode number, so a path that leads to that
 * number leads to this log.
 */
export function flushLog(log, faults) {
  if (faults?.delayMs > 0)
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, faults.delayMs);
  if (faults?.failAfter !== undefined && faults.failAfter-- <= 0)
    throw Object.assign(new Error("EIO: injected flush failure"), {
      code: "EIO",
    });
  fdatasyncSync(log.fd);
  const database = assertInPlace(log);
  if (!noteLog(log)) throw new Error("the write-ahead log was cut off while it was open");
  if (!noteDatabase(log, Number(database.size)))
    throw new Error("the database file was cut off while it was open");
}

function fileAt(path) {
  return statSync(path, { bigint: true, throwIfNoEntry: false });
}

function isSame(found, { dev, ino }) {
  return found !== undefined && found.ino === ino && found.dev === dev;
}

/** Checks that the file and its log are the ones that were opened. */
export function assertInPlace(log) {
  if (!isSame(fileAt(log.path), log))
    throw new Error("the write-ahead log was removed or replaced while it was open");
  const database = fileAt(log.database);
  if (!isSame(database, log.beside))
    throw new Error("the database file was moved, removed or replaced while it was open");
  return database;
}
