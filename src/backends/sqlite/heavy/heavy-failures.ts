import { HoldfastError } from "../../../model/errors.ts";
import { isBusy, sqliteCode, statementFailure } from "../write/failures.ts";
import { databaseBusy } from "../write/database-busy.ts";

/** An error of a driver or the file system, in the form sent between threads. */
export interface Failure {
  readonly message: string;
  readonly code?: unknown;
  readonly errcode?: number;
}

/** The busy timeout that heavy-connection.js sets. */
const busyBudgetMs = 15_000;

/** Restores an error's class and codes, which structured clone strips. */
export function heavyFailure(failure: Failure): HoldfastError {
  const error = Object.assign(new Error(failure.message), failure);
  if (failure.code === "CORRUPT_ROW")
    return new HoldfastError(
      "CORRUPT_ROW",
      "The key of a row holds bytes that are not valid text, so the read cannot continue past it. Inspect the table with a database shell.",
      {},
      { cause: error },
    );
  if (failure.code === "DATABASE_MOVED")
    return new HoldfastError(
      "DATABASE_MOVED",
      "The database file was moved, removed or replaced while it was open, so its path leads to no file or to another one, which was not read. Close the database, find out what happened to the file, and open it again.",
      {},
      { cause: error },
    );
  if (isBusy(error)) return databaseBusy(busyBudgetMs);
  return statementFailure(error, "read", (table) => table);
}

/** The error of a failed backup, which may also be caused by its target. */
export function backupFailure(failure: Failure, to: string): HoldfastError {
  const because = { cause: Object.assign(new Error(failure.message), failure) };
  if (failure.code === "EEXIST") return targetExists(to);
  const sqlite = sqliteCode(failure);
  if (sqlite === "FULL" || failure.code === "ENOSPC")
    return new HoldfastError(
      "DISK_FULL",
      `The disk is full; no backup was left at "${to}". Free some space or name a file on another disk, and retry.`,
      { path: to },
      because,
    );
  const isOfSource =
    failure.code === "DATABASE_MOVED" ||
    sqlite === "CORRUPT" ||
    sqlite === "NOTADB" ||
    sqlite === "BUSY";
  if (isOfSource) return heavyFailure(failure);
  const reason =
    typeof failure.code === "string" && sqlite === undefined ? failure.code : failure.message;
  return new HoldfastError(
    "BACKUP_FAILED",
    `The backup to "${to}" could not be written (${reason}). Check the permissions, the quota and the free space of its folder, then retry.`,
    { path: to, reason },
    because,
  );
}

export function targetExists(to: string): HoldfastError {
  return new HoldfastError(
    "TARGET_EXISTS",
    `"${to}" already exists, and a backup replaces nothing. Choose a new name, or move that file away first.`,
    { path: to },
  );
}

/** The error for our thread or process that ended by itself: out of memory, or killed. */
export function readerEnded(what: string, how: string): HoldfastError {
  return new HoldfastError(
    "STATEMENT_FAILED",
    `The ${what} that was reading the database ended (${how}). Retry; if it recurs, check the file and the memory of the machine.`,
    { how },
  );
}
