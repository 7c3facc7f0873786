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
 * Lets one at a time open, make or remove a session's file. It says for as
 * long as somebody removes a file that it is going, and no longer: the system
 * frees the lock with its process, however that ends.
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

/** What a file has beside it. Of a file that is not there it is left over, and would be taken for a new one's. */
const besides = ["-wal", "-shm", "-journal"];

/** Where a file is between its name and nowhere. */
function going(path: string): string {
  return `${path}-going`;
}

/**
 * Takes a file's name away, and what belongs to that name, while nobody can
 * write to it: who has it open finds afterwards that its log is gone. First the
 * file itself, so that a crash leaves only what `removeLeftovers` knows. Before
 * that it tells the highest generation or fence the file has had. False when a
 * session lives in it.
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

/** Removes what is left of a file that has no name any more. */
export function removeLeftovers(path: string): void {
  if (existsSync(path)) throw new Error(`${basename(path)} is in ${dirname(path)} and stays.`);
  for (const suffix of besides) rmSync(path + suffix, { force: true });
  rmSync(`${path}-owners`, { force: true, recursive: true });
  rmSync(going(path), { force: true });
}
