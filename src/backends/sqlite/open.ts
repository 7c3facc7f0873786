import { HoldfastError, isHoldfastError } from "../../model/errors.ts";
import type { Database } from "../../stores/database.ts";
import { loadDriver } from "./drivers.ts";
import { sqliteCode } from "./failures.ts";
import { Opening } from "./opening.ts";
import { settingsOf } from "./options.ts";
import type { SqliteOptions, SqliteSeams } from "./options.ts";

/**
 * Opens a SQLite file, creating file, folder and schema as needed, or
 * `":memory:"`. Several processes may open one file.
 * @throws HoldfastError with the codes of docs/errors.md under "Opening".
 * @example const database = await openSqlite("./app.db");
 */
export function openSqlite(
  path: string,
  options: SqliteOptions = {},
): Promise<Database> {
  return openSqliteWith(path, options, {});
}

/** The same with parts of the world replaced, for tests and benchmarks. */
export async function openSqliteWith(
  path: string,
  options: SqliteOptions,
  seams: SqliteSeams,
): Promise<Database> {
  const settings = settingsOf(options);
  const opening = new Opening(path, settings, loadDriver(settings.driver));
  try {
    return path === ":memory:"
      ? await opening.memory()
      : await opening.file(seams);
  } catch (error) {
    await opening.undo();
    throw openFailure(error, path);
  }
}

function openFailure(error: unknown, path: string): unknown {
  if (
    isHoldfastError(error) &&
    error.code !== "DATABASE_DAMAGED" &&
    error.code !== "WRITE_IN_READ"
  )
    return error;
  const because = { cause: error };
  switch (sqliteCode(isHoldfastError(error) ? error.cause : error)) {
    case "NOTADB":
      return new HoldfastError(
        "NOT_A_DATABASE",
        `"${path}" is not an SQLite database (or is encrypted). Check the path; nothing was changed.`,
        { path },
        because,
      );
    case "READONLY":
    case "CANTOPEN":
      return new HoldfastError(
        "DATABASE_NOT_WRITABLE",
        `"${path}" cannot be opened for writing. Check the permissions of the file and its folder, or open it with { readOnly: true }.`,
        { path },
        because,
      );
    case "CORRUPT":
      return new HoldfastError(
        "DATABASE_DAMAGED",
        `"${path}" is damaged. Copy it with its -wal aside and restore a backup.`,
        { path },
        because,
      );
    default:
      return error;
  }
}
