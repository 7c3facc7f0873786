import { existsSync, renameSync, rmSync } from "node:fs";
import { basename, dirname } from "node:path";
import { monotonicMs, sleep } from "../../../host/timers.ts";
import { nextRetryMs, retryWhileBusy } from "../write/busy.ts";
import type { Driver } from "../drivers/drivers.ts";
import { databaseBusy } from "../write/database-busy.ts";
import { holdLockFile } from "../lock-file.js";

export interface LockOptions {
  readonly driver: Driver;
  readonly waitMs: number;
}

/**
 * Lets one process at a time open, create or remove a session's file. The lock exists only while a
 * process works on the file: the system releases it when its process ends, however that happens.
 *
 * @throws HoldfastError `DATABASE_BUSY`
 */
export async function whileLocked<T>(
  path: string,
  { driver, waitMs }: LockOptions,
  action: () => Promise<T>,
): Promise<T> {
  const startedMs = monotonicMs();
  let retryMs = 0;
  for (;;) {
    const lock = holdLockFile(`${path}-lock`, (at) => driver.open(at, { readOnly: false }));
    if (lock !== undefined) {
      try {
        return await action();
      } finally {
        lock.release();
      }
    }
    if (monotonicMs() - startedMs >= waitMs) throw databaseBusy(waitMs);
    retryMs = nextRetryMs(retryMs);
    await sleep(retryMs);
  }
}

/**
 * Suffixes of the files beside a database file. Leftovers of a missing file would be taken for a
 * new file's.
 */
const besides = ["-wal", "-shm", "-journal"];

/** The name of a file that is being removed. */
function going(path: string): string {
  return `${path}-going`;
}

/**
 * Removes a file's name, and the files that belong to that name, while no process can write to it.
 * A process that has it open later finds its log gone. The file itself goes first, so a crash
 * leaves only files that `removeLeftovers` knows. Before that it reports the highest generation or
 * fence of the file. Returns false when the file has a live session.
 */
export async function takeAway(
  path: string,
  { driver, waitMs }: LockOptions,
  remember: (last: number) => void,
): Promise<boolean> {
  const connection = driver.open(path, { readOnly: false });
  try {
    await retryWhileBusy(
      () => connection.exec("BEGIN IMMEDIATE"),
      waitMs,
      () => undefined,
      () => databaseBusy(waitMs),
    );
    const living = connection
      .prepare("SELECT key FROM holdfast_session WHERE deleted_at IS NULL")
      .get();
    if (living !== undefined) return false;
    const { last } = connection
      .prepare(
        `SELECT MAX((SELECT COALESCE(MAX(generation), 0) FROM holdfast_session),
          (SELECT COALESCE(MAX(fence), 0) FROM holdfast_session_lease)) AS last`,
      )
      .get() as { readonly last: number | bigint };
    remember(Number(last));
    rmSync(going(path), { force: true });
    renameSync(path, going(path));
    for (const suffix of besides) rmSync(path + suffix, { force: true });
    return true;
  } finally {
    connection.close();
  }
}

/** Removes the leftovers of a file that has no name any more. */
export function removeLeftovers(path: string): void {
  if (existsSync(path)) throw new Error(`${basename(path)} is in ${dirname(path)} and stays.`);
  for (const suffix of besides) rmSync(path + suffix, { force: true });
  rmSync(`${path}-owners`, { force: true, recursive: true });
  rmSync(going(path), { force: true });
}
