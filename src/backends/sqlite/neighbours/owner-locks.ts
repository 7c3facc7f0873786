import {
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  rmdirSync,
  statSync,
} from "node:fs";
import { join } from "node:path";
import { parseOwnerId } from "../../../model/prefixed-id.ts";
import type { OwnerId } from "../../../model/prefixed-id.ts";
import type { Driver, RawConnection } from "../drivers.ts";
import { isBusy } from "../failures.ts";
import type { Liveness } from "../../../stores/database.ts";

/**
 * Proof of life and death by locks that the kernel gives back with the
 * process: each owner holds a tiny SQLite file exclusively. A process id
 * proves nothing: a zombie still has one, and another pid namespace shows
 * none. The files lie beside the database, so that whoever can lock the
 * database can judge its owners.
 */
export class OwnerLocks {
  readonly #driver: Driver;
  readonly #folder: string;
  #held: RawConnection | undefined;

  constructor(driver: Driver, database: string) {
    this.#driver = driver;
    this.#folder = `${database}-owners`;
  }

  /** Takes this process's own lock; it is held until `release` or death. */
  hold(owner: OwnerId): void {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return this.#hold(owner);
      } catch (error) {
        // The last one to leave may have removed the folder under our hands.
        if (attempt >= holdAttemptsMax) throw error;
      }
    }
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
    rmSync(this.#file(owner), { force: true });
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

  #hold(owner: OwnerId): void {
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
    // Locked under another name first: a file by its own name that is not
    // locked would be taken for that of a dead owner.
    const unborn = this.#file(owner) + unbornSuffix;
    const connection = this.#driver.open(unborn, { readOnly: false });
    try {
      // Nothing is ever written here, so no journal file need lie beside it.
      connection.exec("PRAGMA journal_mode = MEMORY");
      connection.exec("BEGIN EXCLUSIVE");
      renameSync(unborn, this.#file(owner));
    } catch (error) {
      connection.close();
      throw error;
    }
    this.#held = connection;
  }

  #file(owner: OwnerId): string {
    return join(this.#folder, owner + suffix);
  }
}

const suffix = ".lock";
const unbornSuffix = ".new";
const holdAttemptsMax = 20;

function inode(file: string): bigint | undefined {
  return statSync(file, { bigint: true, throwIfNoEntry: false })?.ino;
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
