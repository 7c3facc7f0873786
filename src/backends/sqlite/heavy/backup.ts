import { lstatSync, realpathSync, rmSync, statSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { systemEntropy } from "../../../host/entropy.ts";
import { later } from "../../../host/timers.ts";
import { HoldfastError } from "../../../model/errors.ts";
import { excerpt } from "../../../model/values/excerpt.ts";
import type { Driver } from "../drivers/drivers.ts";
import { makeFolder } from "../file.ts";
import type { HeavyCall, OpenFile } from "./heavy-call.ts";
import { backupFailure, targetExists } from "./heavy-failures.ts";
import { inKillableProcess } from "./killable-process.ts";
import { holdLockFile } from "../lock-file.js";

export interface BackupResult {
  readonly bytes: number;
}

/** The interval at which the growth of the copy is measured. */
const pollMs = 50;

/**
 * Copies the database to a new file; see `SqliteDatabase.backup` for the contract. Runs `VACUUM
 * INTO` a temporary name, in a process that can be killed. Then the copy is flushed and linked to
 * its own name, so a partial copy is never visible.
 */
export async function backUp(
  driver: Driver,
  file: OpenFile,
  to: string,
  { signal, onProgress }: HeavyCall,
): Promise<BackupResult> {
  const target = await prepareTarget(to, file.path);
  const random = Buffer.from(systemEntropy.bytes(8)).toString("hex");
  const temporary = `${target}.tmp-${random}`;
  const lockPath = `${target}.tmp-lock`;
  const abandoned = new AbortController();
  const growth = new Growth(temporary, onProgress, (error) => abandoned.abort(error));
  try {
    const result = await inKillableProcess<BackupResult | { isLocked: true }>(driver, {
      job: "backup",
      source: { ...file, target, temporary, lockPath },
      hear(message) {
        if (message.kind === "estimate") growth.start(message.bytes);
        if (message.kind === "written") growth.end(message.bytes);
      },
      failure: (failure) => backupFailure(failure, to),
      signal: AbortSignal.any([signal, abandoned.signal]),
    });
    if ("isLocked" in result) throw targetBusy(to);
    return result;
  } catch (error) {
    removeRemains(driver, temporary, lockPath);
    throw error;
  } finally {
    growth.stop();
  }
}

/** Reports the progress of the copy by the size of its file, which only SQLite may open yet. */
class Growth {
  readonly #file: string;
  readonly #tell: HeavyCall["onProgress"];
  readonly #failed: (error: unknown) => void;
  #cancel: (() => void) | undefined;

  constructor(file: string, tell: HeavyCall["onProgress"], failed: (error: unknown) => void) {
    this.#file = file;
    this.#tell = tell;
    this.#failed = failed;
  }

  start(total: number): void {
    let told = -1;
    const look = (): void => {
      this.#cancel = later(pollMs, look);
      const size = statSync(this.#file, { throwIfNoEntry: false })?.size ?? 0;
      const done = Math.min(size, total);
      if (done === told) return;
      told = done;
      try {
        this.#tell({ done, total });
      } catch (error) {
        this.stop();
        this.#failed(error);
      }
    };
    look();
  }

  /** Reports the end. An error of the listener still ends the backup, which has no name yet. */
  end(bytes: number): void {
    this.stop();
    this.#tell({ done: bytes, total: bytes });
  }

  stop(): void {
    this.#cancel?.();
  }
}

/** Removes the leftovers of a process that was killed in mid-copy. */
function removeRemains(driver: Driver, temporary: string, lockPath: string): void {
  for (const suffix of ["", "-journal"]) rmSync(temporary + suffix, { force: true });
  if (statSync(lockPath, { throwIfNoEntry: false }) === undefined) return;
  // Another process may have started a backup to the same name since.
  holdLockFile(lockPath, (path) => driver.open(path, { readOnly: false }))?.release();
}

/** The path of the backup; creates its folder. Opens and replaces nothing there. */
async function prepareTarget(to: string, source: string): Promise<string> {
  if (
    typeof to !== "string" ||
    to === "" ||
    to === ":memory:" ||
    to.startsWith("file:") ||
    to.includes("\0")
  )
    throw targetInvalid(to, "is not the path of a file");
  const folder = await targetFolder(dirname(resolve(to)), to);
  const target = join(folder, basename(resolve(to)));
  for (const suffix of ["", "-wal", "-shm", "-journal"])
    if (target === source + suffix || isSameFile(target, source + suffix))
      throw targetInvalid(to, "belongs to the database itself");
  if (lstat(target)?.isDirectory() === true) throw targetInvalid(to, "is a folder");
  // SQLite would take an old log beside the backup for a part of it.
  for (const suffix of ["", "-wal", "-journal"])
    if (lstat(target + suffix) !== undefined) throw targetExists(to + suffix);
  return target;
}

/** Creates the folder as for a new database, so that it survives power loss. */
async function targetFolder(folder: string, to: string): Promise<string> {
  try {
    await makeFolder(folder);
    return realpathSync(folder);
  } catch (error) {
    const failure = error as NodeJS.ErrnoException;
    if (failure.code === "EEXIST" || failure.code === "ENOTDIR")
      throw targetInvalid(to, "has a file where its folder should be");
    throw backupFailure(failure, to);
  }
}

function lstat(path: string): ReturnType<typeof lstatSync> | undefined {
  return lstatSync(path, { throwIfNoEntry: false });
}

function isSameFile(left: string, right: string): boolean {
  const [one, other] = [left, right].map((path) =>
    statSync(path, { bigint: true, throwIfNoEntry: false }),
  );
  return one !== undefined && one.ino === other?.ino && one.dev === other.dev;
}

function targetInvalid(to: unknown, why: string): HoldfastError {
  const shown = typeof to === "string" ? excerpt(to) : typeof to;
  return new HoldfastError(
    "TARGET_INVALID",
    `A backup cannot go to ${shown}: it ${why}. Name a new file, preferably on another disk.`,
    { path: to },
  );
}

function targetBusy(to: string): HoldfastError {
  return new HoldfastError(
    "TARGET_BUSY",
    `Another backup to "${to}" is under way. Wait for it, or choose another name.`,
    { path: to },
  );
}
