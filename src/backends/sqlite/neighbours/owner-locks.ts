import {
  chmodSync,
  chownSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  rmdirSync,
  statSync,
} from "node:fs";
import type { Stats } from "node:fs";
import { join } from "node:path";
import { HoldfastError, isHoldfastError } from "../../../model/errors.ts";
import { parseOwnerId } from "../../../model/ids/prefixed-id.ts";
import type { OwnerId } from "../../../model/ids/prefixed-id.ts";
import type { Driver, RawConnection } from "../drivers/drivers.ts";
import { isBusy, sqliteCode } from "../write/failures.ts";
import { holdLockFile } from "../lock-file.js";
import type { LockFile } from "../lock-file.js";
import type { Liveness } from "../../../sql/database.ts";

/**
 * Proof of life and death by locks that the kernel releases with their process. Each owner holds an
 * exclusive lock on a tiny SQLite file. A process id proves nothing: a zombie still has one, and
 * another pid namespace shows none. The files lie beside the database, so that every process that
 * can lock the database can judge its owners.
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

  /** Takes this process's own lock, which is held until `release` or death. */
  hold(owner: OwnerId): void {
    for (let attempt = 1; ; attempt += 1) {
      try {
        this.#hold(owner, attempt);
        break;
      } catch (error) {
        if (isHoldfastError(error)) throw error;
        // The last process to leave may have removed the folder in between.
        if (attempt >= holdAttemptsMax) throw folderFailure(error, this.#folder);
      }
    }
    this.#removeUnborn();
  }

  /** Judges an owner. @returns `dead` only when its lock could be taken: nothing else is proof. */
  judge(owner: OwnerId): Liveness {
    const file = this.#file(owner);
    const before = isLink(this.#folder) ? undefined : inode(file);
    if (before === undefined) return "unknown";
    let connection: RawConnection | undefined;
    try {
      connection = this.#driver.open(file, { readOnly: true });
      // A shared lock, so that several processes may check at once without misleading each other.
      connection.prepare("SELECT 1 FROM sqlite_schema").all();
      // A process that closes in order removes the file before its lock: that is not a death.
      return inode(file) === before ? "dead" : "unknown";
    } catch (error) {
      return isBusy(error) ? "alive" : "unknown";
    } finally {
      connection?.close();
    }
  }

  /** All owners with a lock file, alive or not. */
  owners(): readonly OwnerId[] {
    if (isLink(this.#folder)) return [];
    return namesIn(this.#folder).flatMap((name) => {
      if (!name.endsWith(suffix)) return [];
      try {
        return [parseOwnerId(name.slice(0, -suffix.length))];
      } catch {
        return [];
      }
    });
  }

  /** Removes the file of an owner that left, or whose death is on record. */
  remove(owner: OwnerId): void {
    try {
      rmSync(this.#file(owner), { force: true });
    } catch {
      // Without the permission for it here, a process that has the permission will remove it.
    }
  }

  /** Releases this process's own lock. */
  release(): void {
    this.#held?.close();
    this.#held = undefined;
    try {
      // Succeeds for the last process to leave.
      rmdirSync(this.#folder);
    } catch {
      // Other processes are still here.
    }
  }

  #hold(owner: OwnerId, attempt: number): void {
    const database = statSync(this.#database);
    const mode = database.mode & 0o666;
    if (isLink(this.#folder)) throw folderIsLink(this.#folder);
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
    // Entering a folder requires the execute permission, which goes with reading.
    share(this.#folder, database, mode | ((mode & 0o444) >> 2) | 0o700);
    // Locked under another name first, because an unlocked file under its own name would be taken
    // for a dead owner's. The name is new each time: a process that took the last file for
    // abandoned may hold its lock for a while.
    const unborn = join(this.#folder, `${owner}-${attempt}${suffix}${unbornSuffix}`);
    const lock = holdLockFile(unborn, this.#open);
    if (lock === undefined) throw new Error(`${unborn} is locked by another process`);
    share(unborn, database, mode);
    try {
      // Fails when another process took the file for abandoned before it was locked.
      renameSync(unborn, this.#file(owner));
    } catch (error) {
      lock.close();
      throw error;
    }
    this.#held = lock;
  }

  /** Removes files of processes that died before their lock got its name. */
  #removeUnborn(): void {
    for (const name of namesIn(this.#folder))
      if (name.endsWith(suffix + unbornSuffix))
        try {
          // A process about to lock it finds it gone, and starts over.
          holdLockFile(join(this.#folder, name), this.#open)?.release();
        } catch {
          // Left for the next process to try.
        }
  }

  #file(owner: OwnerId): string {
    return join(this.#folder, owner + suffix);
  }
}

/** True when no living process is known to have the database open. */
export function isAlone(database: string, driver: Driver): boolean {
  const locks = new OwnerLocks(driver, database);
  return !locks.owners().some((owner) => locks.judge(owner) === "alive");
}

const suffix = ".lock";
const unbornSuffix = ".new";
/** Every process that opens the file may be in the way once. */
const holdAttemptsMax = 100;

/**
 * Checks for a link. A user who may write beside the database could point a link at any folder,
 * whose permissions would then be changed.
 */
function isLink(folder: string): boolean {
  return lstatSync(folder, { throwIfNoEntry: false })?.isSymbolicLink() === true;
}

function folderIsLink(folder: string): HoldfastError {
  return new HoldfastError(
    "DATABASE_NOT_WRITABLE",
    `"${folder}", in which processes prove that they are alive, is a symbolic link, which is not followed. Remove it; a folder is created in its place.`,
    { path: folder, reason: "LINK" },
  );
}

function inode(file: string): bigint | undefined {
  return statSync(file, { bigint: true, throwIfNoEntry: false })?.ino;
}

/**
 * Gives every process that may write the database the same access here, regardless of this
 * process's umask and main group. SQLite does the same for its own files.
 */
function share(path: string, database: Stats, mode: number): void {
  try {
    const { uid, gid, mode: found } = statSync(path);
    const isRoot = process.getuid?.() === 0;
    if (gid !== database.gid || (isRoot && uid !== database.uid))
      chownSync(path, isRoot ? database.uid : -1, database.gid);
    if ((found & 0o777) !== mode) chmodSync(path, mode);
  } catch {
    // The path belongs to another user. If we may not write it, the next step reports that.
  }
}

/**
 * The error for the folder. A permission error names the folder, because the database's own
 * permissions may be correct.
 */
function folderFailure(error: unknown, folder: string): unknown {
  const reason = sqliteCode(error) ?? (error as NodeJS.ErrnoException).code ?? "unknown";
  if (!rightsCodes.has(reason)) return error;
  return new HoldfastError(
    "DATABASE_NOT_WRITABLE",
    `The folder "${folder}", in which processes prove that they are alive, is not writable (${reason}). ` +
      "Give it the owner and group of the database file, with write permission, or remove it while no process has the database open.",
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
