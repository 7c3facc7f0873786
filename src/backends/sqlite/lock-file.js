// Plain JavaScript, shared by the backup's process and those that start it.
import { closeSync, openSync, rmSync, statSync } from "node:fs";
import { isBusy } from "./write/busy-error.js";

const attemptsMax = 20;

/**
 * An empty SQLite file, locked exclusively. The kernel releases the lock when its owner ends,
 * however that happens; a name or a process id would outlive its owner. The process that holds the
 * lock removes the file. A lock on a removed file protects nothing, so the path is checked again.
 */
export function holdLockFile(path, open, { waitMs = 0 } = {}) {
  for (let attempt = 0; attempt < attemptsMax; attempt += 1) {
    const before = create(path);
    const connection = open(path);
    try {
      connection.exec(`PRAGMA busy_timeout = ${waitMs}`);
      // Nothing is ever written, and a journal would be one more file to remove.
      connection.exec("PRAGMA journal_mode = MEMORY");
      connection.exec("BEGIN EXCLUSIVE");
    } catch (error) {
      connection.close();
      if (isBusy(error)) return undefined;
      throw error;
    }
    if (before !== undefined && inode(path) === before)
      return {
        close: () => connection.close(),
        release() {
          rmSync(path, { force: true });
          connection.close();
        },
      };
    connection.close();
  }
  return undefined;
}

function create(path) {
  try {
    closeSync(openSync(path, "wx", 0o600));
  } catch (error) {
    if (error.code !== "EEXIST") throw error;
  }
  return inode(path);
}

function inode(path) {
  return statSync(path, { bigint: true, throwIfNoEntry: false })?.ino;
}
