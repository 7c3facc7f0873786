// Plain JavaScript, shared by the thread and the process of heavy reads.
import { closeSync, fdatasyncSync, openSync, statSync } from "node:fs";
import { loadModule } from "../drivers/load-module.js";

/** The longest wait of a statement for a lock. No event loop waits with it. */
const busyMs = 15_000;

export function openWith({ driver, modulePath }, path, readOnly) {
  const loaded = loadModule(modulePath);
  return driver === "better-sqlite3"
    ? new loaded(path, {
        readonly: readOnly,
        fileMustExist: readOnly,
        timeout: 0,
      })
    : new loaded.DatabaseSync(path, { readOnly });
}

/** The identity of the file at a path; undefined when there is none. */
export function identityOf(path) {
  const found = statSync(path, { bigint: true, throwIfNoEntry: false });
  return found && `${found.dev}:${found.ino}`;
}

/** Refuses another file that now has the path, since its state says nothing about ours. */
function refuseOther({ path, identity }) {
  if (identityOf(path) === identity) return;
  throw Object.assign(new Error("the file is no longer at its path"), {
    code: "DATABASE_MOVED",
  });
}

/** Opens the file with the writer's driver, read-only. */
export function openReadOnly(source) {
  refuseOther(source);
  const connection = openWith(source, source.path, true);
  try {
    refuseOther(source);
  } catch (error) {
    connection.close();
    throw error;
  }
  for (const pragma of [`busy_timeout = ${busyMs}`, "mmap_size = 0", "cache_size = -16384"])
    connection.exec(`PRAGMA ${pragma}`);
  return connection;
}

/** The names of all tables of the file that store rows, sorted. */
export function tableNames(connection) {
  return connection
    .prepare(
      `SELECT name FROM pragma_table_list
       WHERE schema = 'main' AND type IN ('table', 'shadow') ORDER BY name`,
    )
    .all()
    .map(({ name }) => name);
}

export const quoted = (name) => `"${name.replaceAll('"', '""')}"`;

/** The problems that a check found, in SQLite's words; empty when there are none. */
export function problemsOf(connection, pragma) {
  const found = connection.prepare(`PRAGMA ${pragma}`).all();
  return found.map((row) => String(Object.values(row)[0])).filter((text) => text !== "ok");
}

/**
 * Makes the write-ahead log durable up to now. Only the log may be opened beside the driver,
 * because SQLite holds no locks on it. When it is gone, the last process to close the file has
 * moved all of it into the database.
 */
export function flushLog(path) {
  let fd;
  try {
    // Windows flushes only writable files.
    fd = openSync(`${path}-wal`, process.platform === "win32" ? "r+" : "r");
  } catch (error) {
    if (error.code === "ENOENT") return;
    throw error;
  }
  try {
    fdatasyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

/** A driver's error as data, because errors sent between threads lose their class. */
export function failureOf(error) {
  return {
    message: String(error?.message ?? error),
    code: error?.code,
    errcode: error?.errcode,
  };
}
