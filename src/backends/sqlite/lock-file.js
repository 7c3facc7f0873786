// Plain JavaScript, shared by the backup's process and those that start it.
import { closeSync, openSync, rmSync, statSync } from "node:fs";
import { isBusy } from "./write/busy-error.js";

const attemptsMax = 20;

/**
 * An empty SQLite file, locked exclusively: the kernel frees it with its
 * owner, however that ends, where a name or a process id would lie. A process that
 * holds the lock removes the file; a lock on a file that was removed
 * meanwhile protects nothing, so the path is looked at again.
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
