import { accessSync, constants } from "node:fs";
import { HoldfastError, isHoldfastError } from "../../model/errors.ts";
import { recallPayloadMark } from "../../stores/payload-seal.ts";
import { optionInvalid } from "../option-checks.ts";
import { loadDriver } from "./drivers/drivers.ts";
import { diskFailed, sqliteCode } from "./write/failures.ts";
import { Opening } from "./opening.ts";
import { settingsOf } from "./options.ts";
import type { SqliteOptions, SqliteSeams } from "./options.ts";
import type { SqliteDatabase } from "./sqlite-database.ts";

/**
 * Opens a SQLite file, creating file, folder and schema as needed, or `":memory:"`. Several
 * processes may open the same file.
 * @throws HoldfastError with the codes of docs/errors.md under "Opening".
 * @example const database = await openSqlite("./app.db");
 */
export function openSqlite(path: string, options: SqliteOptions = {}): Promise<SqliteDatabase> {
  return openSqliteWith(path, options, {});
}

/** Opens a database with replaced system parts, for tests and benchmarks. */
export async function openSqliteWith(
  path: string,
  options: SqliteOptions,
  seams: SqliteSeams,
): Promise<SqliteDatabase> {
  const settings = settingsOf(options, seams.onWarning);
  if (path === ":memory:" && settings.readOnly)
    throw optionInvalid("readOnly", true, "false for a database in memory, which starts empty");
  const driver = loadDriver(settings.driver, settings.warn);
  const opening = new Opening(path, settings, driver, seams.isMover);
  try {
    if (path === ":memory:") return await opening.memory();
    const database = await opening.file(seams);
    await recallPayloadMark(database);
    return database;
  } catch (error) {
    await opening.undo();
    throw openFailure(error, path, settings.readOnly);
  }
}

/** Converts an error of a driver or the file system into ours. */
function openFailure(error: unknown, path: string, readOnly: boolean): unknown {
  const isTelling =
    isHoldfastError(error) &&
    error.code !== "DATABASE_DAMAGED" &&
    error.code !== "WRITE_IN_READ" &&
    error.code !== "DATABASE_NOT_WRITABLE";
  if (isTelling || (isHoldfastError(error) && error.cause === undefined)) return error;
  const reason = isHoldfastError(error) ? error.cause : error;
  const { code: errno } = reason as NodeJS.ErrnoException;
  const because = { cause: error };
  switch (sqliteCode(reason) ?? errno) {
    case "NOTADB":
      return new HoldfastError(
        "NOT_A_DATABASE",
        `"${path}" is not an SQLite database (or is encrypted). Check the path; nothing was changed.`,
        { path },
        because,
      );
    case "CORRUPT":
      return new HoldfastError(
        "DATABASE_DAMAGED",
        `"${path}" is damaged; opening it left the file and its -wal as they are. Move both aside together and restore a backup. ` +
          "Leave a -wal beside a file only if it belongs to that file: it may hold the newest transactions, and it damages any other copy.",
        { path },
        because,
      );
    case "FULL":
    case "ENOSPC":
      return new HoldfastError(
        "DISK_FULL",
        `There is no space left to open "${path}". Free some and retry.`,
        { path },
        because,
      );
    case "IOERR":
    case "EIO":
      return diskFailed(reason, path);
    case "READONLY":
    case "CANTOPEN":
    case "EACCES":
    case "EPERM":
    case "EROFS":
      return new HoldfastError(
        "DATABASE_NOT_WRITABLE",
        readOnly
          ? `"${path}" cannot be read. ${readOnlyRemedy(path)}`
          : `"${path}" cannot be opened for writing. Check the permissions of the file and its folder, or open it with { readOnly: true }.`,
        { path },
        because,
      );
    default:
      return errno === undefined || isHoldfastError(error)
        ? error
        : new HoldfastError(
            "DATABASE_NOT_WRITABLE",
            `"${path}" cannot be opened (${errno}). Check the file and its folder for the cause of this system error.`,
            { path, reason: errno },
            because,
          );
  }
}

/**
 * The remedy for an unreadable file. Reading a file in write-ahead mode writes to its -shm. SQLite
 * could be told that the file never changes, but then it would not see changes.
 */
function readOnlyRemedy(path: string): string {
  try {
    accessSync(path, constants.R_OK);
  } catch {
    return "Check the permissions of the file and its folder.";
  }
  return (
    "It is in write-ahead mode, and its folder is not writable: SQLite needs readable -wal and -shm files beside it, or permission to create them. " +
    "Allow this user to write to the folder, or use a copy made by database.backup, which needs neither."
  );
}
