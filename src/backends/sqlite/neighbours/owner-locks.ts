import {
  chmodSync,
  chownSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  rmdirSync,
  statSync,
} from "node:fs";
import type { Stats } from "node:fs";
import { join } from "node:path";
import { HoldfastError } from "../../../model/errors.ts";
import { parseOwnerId } from "../../../model/ids/prefixed-id.ts";
import type { OwnerId } from "../../../model/ids/prefixed-id.ts";
import type { Driver, RawConnection } from "../drivers/drivers.ts";
import { isBusy, sqliteCode } from "../write/failures.ts";
import { holdLockFile } from "../lock-file.js";
import type { LockFile } from "../lock-file.js";
import type { Liveness } from "../../../sql/database.ts";

/**
 * Proof of life and death by locks that the kernel gives back with the
 * process: each owner holds a tiny SQLite file exclusively. A process id
 * proves nothing: a zombie still has one, and another pid namespace shows
 * none. The files lie beside the database, so that a process that can lock the
 * database can judge its owners.
 */
export class OwnerLocks {
  readonly #driver: Driver;
  readonly #database: string;
  readonly #folder: string;
  readonly #open = (file: string): RawConnection => this.#driver.open(file, { readOnly: false });
  #held: LockFile | undefined;

  constructor(driver: Driver, database: string) {
    this.#driver = driver;
    this.#database = database;
    this.#folder = `${database}-owners`;
  }

  /** Takes this process's own lock; it is held until `release` or death. */
  hold(owner: OwnerId): void {
    for (let attempt = 1; ; attempt += 1) {
      try {
        this.#hold(owner, attempt);
        break;
      } catch (error) {
        // The last one to leave may have removed the folder under our hands.
        if (attempt >= holdAttemptsMax) throw folderFailure(error, this.#folder);
      }
    }
    this.#removeUnborn();
  }

  /** @returns `dead` only when the lock could be had: anything else is no proof. */
  judge(owner: OwnerId): Liveness {
    const file = this.#file(owner);
    const before = inode(file);
    if (before === undefined) return "unknown";
    let connection: RawConnection | undefined;
    try {
      connection = this.#driver.open(file, { readOnly: true });
      // A shared lock, so that several may look at once without fooling each other.
      connection.prepare("SELECT 1 FROM sqlite_schema").all();
      // Who leaves in order removes the file before the lock: that is no death.
      return inode(file) === before ? "dead" : "unknown";
    } catch (error) {
      return isBusy(error) ? "alive" : "unknown";
    } finally {
      connection?.close();
    }
  }

  /** Everybody who left a lock file, alive or not. */
  owners(): readonly OwnerId[] {
    return namesIn(this.#folder).flatMap((name) => {
      if (!name.endsWith(suffix)) return [];
      try {
        return [parseOwnerId(name.slice(0, -suffix.length))];
      } catch {
        return [];
      }
    });
  }

  /** Removes the file of an owner who left, or whose death is on record. */
  remove(owner: OwnerId): void {
    try {
      rmSync(this.#file(owner), { force: true });
    } catch {
      // Without the right to it, a process that has it will.
    }
  }

  /** Gives the own lock back. */
  release(): void {
    this.#held?.close();
    this.#held = undefined;
    try {
      // Succeeds for the last one to leave.
      rmdirSync(this.#folder);
    } catch {
      // Others are still here.
    }
  }

  #hold(owner: OwnerId, attempt: number): void {
    const database = statSync(this.#database);
    const mode = database.mode & 0o666;
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
    // Entering a folder takes a right of its own; it goes with reading.
    share(this.#folder, database, mode | ((mode & 0o444) >> 2) | 0o700);
    // Locked under another name first: a file by its own name that is not
    // locked would be taken for that of a dead owner. A new one each time:
    // a process that took the last one for abandoned may hold its lock for a while.
    const unborn = join(this.#folder, `${owner}-${attempt}${suffix}${unbornSuffix}`);
    const lock = holdLockFile(unborn, this.#open);
    if (lock === undefined) throw new Error(`${unborn} is locked by somebody else`);
    share(unborn, database, mode);
    try {
      // Fails when somebody took it for abandoned before it was locked.
      renameSync(unborn, this.#file(owner));
    } catch (error) {
      lock.close();
      throw error;
    }
    this.#held = lock;
  }

  /** Removes what processes left that died before their lock got its name. */
  #removeUnborn(): void {
    for (const name of namesIn(this.#folder))
      if (name.endsWith(suffix + unbornSuffix))
        try {
          // A process about to lock it finds it gone, and begins again.
          holdLockFile(join(this.#folder, name), this.#open)?.release();
        } catch {
          // Left for the next one to try.
        }
  }

  #file(owner: OwnerId): string {
    return join(this.#folder, owner + suffix);
  }
}

/** Whether no living process is known to have the database open. */
export function isAlone(database: string, driver: Driver): boolean {
  const locks = new OwnerLocks(driver, database);
  return !locks.owners().some((owner) => locks.judge(owner) === "alive");
}

const suffix = ".lock";
const unbornSuffix = ".new";
/** Everybody who opens may be in the way once. */
const holdAttemptsMax = 100;

function inode(file: string): bigint | undefined {
  return statSync(file, { bigint: true, throwIfNoEntry: false })?.ino;
}

/**
 * A process that may write the database may write here, whatever this process's
 * umask and main group are, as SQLite does it for its own files.
 */
function share(path: string, database: Stats, mode: number): void {
  try {
    const { uid, gid, mode: found } = statSync(path);
    const isRoot = process.getuid?.() === 0;
    if (gid !== database.gid || (isRoot && uid !== database.uid))
      chownSync(path, isRoot ? database.uid : -1, database.gid);
    if ((found & 0o777) !== mode) chmodSync(path, mode);
  } catch {
    // Somebody else's; if we may not write it, the next step says so.
  }
}

/** What has to do with rights names the folder: the database's own may be in order. */
function folderFailure(error: unknown, folder: string): unknown {
  const reason = sqliteCode(error) ?? (error as NodeJS.ErrnoException).code ?? "unknown";
  if (!rightsCodes.has(reason)) return error;
  return new HoldfastError(
    "DATABASE_NOT_WRITABLE",
    `The folder "${folder}", where processes show that they are alive, cannot be written (${reason}). ` +
      "Give it the same owner and group as the database file, with the right to write, or remove it while no process has the database open.",
    { path: folder, reason },
  );
}

const rightsCodes = new Set([
  "EACCES",
  "EPERM",
  "EROFS",
  "ENOTDIR",
  "EEXIST",
  "CANTOPEN",
  "READONLY",
]);

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
