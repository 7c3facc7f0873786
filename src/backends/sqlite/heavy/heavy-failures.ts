import { HoldfastError } from "../../../model/errors.ts";
import { isBusy, sqliteCode, statementFailure } from "../write/failures.ts";
import { databaseBusy } from "../write/database-busy.ts";

/** A driver's or the file system's error, as it crosses between threads. */
export interface Failure {
  readonly message: string;
  readonly code?: unknown;
  readonly errcode?: number;
}

/** What heavy-connection.js lets SQLite wait for. */
const busyBudgetMs = 15_000;

/** Structured clone strips an error of its class and codes; this gives them back. */
export function heavyFailure(failure: Failure): HoldfastError {
  const error = Object.assign(new Error(failure.message), failure);
  if (failure.code === "CORRUPT_ROW")
    return new HoldfastError(
      "CORRUPT_ROW",
      "The key of a row holds bytes that are no valid text, so the walk cannot go on past it. Look at the table with a database shell.",
      {},
      { cause: error },
    );
  if (failure.code === "DATABASE_MOVED")
    return new HoldfastError(
      "DATABASE_MOVED",
      "The database file was moved, removed or replaced while it was open, so its path leads to nothing or to another file, which was not looked at. Close the database, see what happened to the file, and open it again.",
      {},
      { cause: error },
    );
  if (isBusy(error)) return databaseBusy(busyBudgetMs);
  return statementFailure(error, "read", (table) => table);
}

/** The same for a backup, which also fails for reasons of its target. */
export function backupFailure(failure: Failure, to: string): HoldfastError {
  const because = { cause: Object.assign(new Error(failure.message), failure) };
  if (failure.code === "EEXIST") return targetExists(to);
  const sqlite = sqliteCode(failure);
  if (sqlite === "FULL" || failure.code === "ENOSPC")
    return new HoldfastError(
      "DISK_FULL",
      `The disk is full; no backup was left at "${to}". Free some space or name a file on another disk, and try again.`,
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
    `The backup to "${to}" could not be written (${reason}). Check the permissions, the quota and the free space of its folder, then try again.`,
    { path: to, reason },
    because,
  );
}

export function targetExists(to: string): HoldfastError {
  return new HoldfastError(
    "TARGET_EXISTS",
    `"${to}" exists already, and a backup replaces nothing. Choose a new name, or move that file away first.`,
    { path: to },
  );
}

/** A thread or process of ours ended by itself: out of memory, or killed. */
export function readerEnded(what: string, how: string): HoldfastError {
  return new HoldfastError(
    "STATEMENT_FAILED",
    `The ${what} that was reading the database ended (${how}). Try again; if it recurs, check the file and the memory of the machine.`,
    { how },
  );
}
