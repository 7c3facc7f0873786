// Plain JavaScript, embedded as a text by `npm run threads`. A process instead of a thread, because
// no other thread can interrupt one long statement of SQLite: ending a thread waits for the
// statement, ending a process does not.
import { closeSync, existsSync, fsyncSync, linkSync, openSync } from "node:fs";
import { readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import {
  failureOf,
  flushLog,
  openReadOnly,
  openWith,
  problemsOf,
  quoted,
  tableNames,
} from "./heavy-connection.js";
import { holdLockFile } from "../lock-file.js";

/** Sends a message. The caller may be gone; then the work is undone all the same. */
const tell = (message) => process.send(message, () => undefined);

/** Checks a whole file in one statement: to which object each page belongs, if any. */
function check(source) {
  const connection = openReadOnly(source);
  const tables = tableNames(connection);
  const ours = tables.filter((name) => name.startsWith("holdfast_"));
  const steps = { done: 0, total: 1 + ours.length };
  const skipped = [];
  let problems;
  try {
    problems = problemsOf(connection, "integrity_check");
  } catch (error) {
    if (isDamage(error)) throw error;
    // An index or constraint of the app calls a function that only the app has.
    problems = tables.flatMap((table) => {
      try {
        return problemsOf(connection, `integrity_check(${quoted(table)})`);
      } catch (failure) {
        if (isDamage(failure)) throw failure;
        skipped.push(table);
        return [];
      }
    });
  }
  tell({ kind: "progress", ...steps, done: 1 });
  for (const [index, table] of ours.entries()) {
    problems.push(...orphans(connection, table));
    tell({ kind: "progress", ...steps, done: index + 2 });
  }
  connection.close();
  return { problems, tables: tables.length - skipped.length, skipped };
}

/** Finds missing references of our tables only: an app may not enforce its own. */
function orphans(connection, table) {
  return connection
    .prepare(`PRAGMA foreign_key_check(${quoted(table)})`)
    .all()
    .map(
      (row) =>
        `row ${row.rowid ?? "?"} of ${row.table} refers to a row of ${row.parent} that does not exist`,
    );
}

function isDamage(error) {
  const code = error.errcode === undefined ? error.code : error.errcode & 0xff;
  return code === 11 || code === 26 || /CORRUPT|NOTADB/.test(String(code));
}

/**
 * Copies the database under a temporary name. Gives the copy its final name only when the copy, and
 * the snapshot it was taken from, are durable.
 */
async function backup(source) {
  const { target, temporary, lockPath } = source;
  // Waits briefly for a process that only checks whether the lock is free.
  const lock = holdLockFile(lockPath, (path) => openWith(source, path, false), {
    waitMs: 100,
  });
  if (lock === undefined) return { isLocked: true };
  try {
    removeLeftovers(target);
    // SQLite keeps the mode of an empty file, so only its owner can access the copy.
    closeSync(openSync(temporary, "wx", 0o600));
    copy(source);
    flushLog(source.path);
    syncPath(temporary);
    const { size: bytes } = statSync(temporary);
    await permission(bytes);
    publish(temporary, target);
    return { bytes };
  } finally {
    remove(temporary);
    lock.release();
  }
}

function copy({ temporary, ...source }) {
  const connection = openReadOnly(source);
  try {
    const count = (name) => Number(Object.values(connection.prepare(`PRAGMA ${name}`).get())[0]);
    const pages = count("page_count") - count("freelist_count");
    tell({ kind: "estimate", bytes: pages * count("page_size") });
    connection.prepare("VACUUM INTO ?").run(temporary);
  } finally {
    connection.close();
  }
}

/** Asks the caller for permission to finish. Until then the backup can be abandoned. */
function permission(bytes) {
  return new Promise((resolve, reject) => {
    process.once("message", resolve);
    process.once("disconnect", () => reject(new Error("no process waits for it")));
    tell({ kind: "written", bytes });
  });
}

/** Uses a link, which unlike a rename never replaces another process's file. */
function publish(temporary, target) {
  try {
    linkSync(temporary, target);
  } catch (error) {
    if (error.code === "EEXIST" || existsSync(target)) throw error;
    // The file system has no links.
    renameSync(temporary, target);
  }
  if (process.platform !== "win32") syncPath(dirname(target));
}

/** Removes leftovers of dead processes. Under the lock, every file with such a name is one. */
function removeLeftovers(target) {
  const folder = dirname(target);
  const prefix = `${basename(target)}.tmp-`;
  for (const name of readdirSync(folder))
    if (name.startsWith(prefix) && /^[0-9a-f]{16}(-journal)?$/.test(name.slice(prefix.length)))
      rmSync(join(folder, name), { force: true });
}

function remove(temporary) {
  for (const suffix of ["", "-journal"]) rmSync(temporary + suffix, { force: true });
}

function syncPath(path) {
  const fd = openSync(path, process.platform === "win32" ? "r+" : "r");
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

const jobs = { backup, check };

async function serve({ job, source }) {
  try {
    tell({ kind: "done", value: await jobs[job](source) });
  } catch (error) {
    if (process.connected) tell({ kind: "failed", failure: failureOf(error) });
  }
  if (process.connected) process.disconnect();
}

process.once("message", serve);
