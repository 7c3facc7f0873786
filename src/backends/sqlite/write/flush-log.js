// Plain JavaScript, run by the thread that flushes and by its caller.
import { fdatasyncSync, statSync } from "node:fs";
import { noteDatabase, noteLog } from "../log/cut-files.js";

/**
 * Flushes the log and proves that it is still the database's, and whole: a
 * flush of an unlinked log succeeds and saves nothing, a database that was
 * moved away would be opened elsewhere without the log, and what was cut off
 * from either of them is gone however well the rest is flushed. While we have
 * the log open its number is no other file's, so a path that leads to that
 * number leads to it.
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

/** That the file and its log are those that were opened. */
export function assertInPlace(log) {
  if (!isSame(fileAt(log.path), log))
    throw new Error("the write-ahead log was removed or replaced while it was open");
  const database = fileAt(log.database);
  if (!isSame(database, log.beside))
    throw new Error("the database file was moved, removed or replaced while it was open");
  return database;
}
