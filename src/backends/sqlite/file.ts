import { closeSync, existsSync, openSync, realpathSync, statSync, statfsSync } from "node:fs";
import { open } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { makeFolders } from "../../host/folders.ts";
import { HoldfastError } from "../../model/errors.ts";
import { excerpt } from "../../model/values/excerpt.ts";
import type { Warning } from "../../sql/database.ts";
import type { Driver } from "./drivers/drivers.ts";

/** File systems on which the locks of several SQLite processes do not work, by `statfs` type. */
const networkFileSystems: ReadonlyMap<number, string> = new Map([
  [0x6969, "NFS"],
  [0x517b, "SMB"],
  [0xff534d42, "CIFS"],
  [0xfe534d42, "SMB2"],
  [0x5346414f, "AFS"],
  [0x73757245, "Coda"],
]);

/** File systems on which locks may work, but shared memory may not cross a border. */
const doubtfulFileSystems: ReadonlyMap<number, string> = new Map([
  [0x65735546, "FUSE"],
  [0x01021997, "9p"],
]);

/** File systems on which locks work, as far as Linux has a number for them. */
const localFileSystems: ReadonlyMap<number, string> = new Map([
  [0xef53, "ext4"],
  [0x58465342, "XFS"],
  [0x9123683e, "Btrfs"],
  [0xf2f52010, "F2FS"],
  [0x2fc12fc1, "ZFS"],
  [0x794c7630, "overlay"],
  [0x01021994, "tmpfs"],
]);

export interface FileSystemProbe {
  (directory: string): number;
}

const probeFileSystem: FileSystemProbe = (directory) =>
  // Some types are reported as negative 32-bit numbers.
  statfsSync(directory).type >>> 0;

/** The name of a folder's file system; undefined when unknown. */
export function fileSystemOf(directory: string): string | undefined {
  if (process.platform !== "linux") return undefined;
  const type = probeFileSystem(directory);
  return [localFileSystems, doubtfulFileSystems, networkFileSystems]
    .map((names) => names.get(type))
    .find((name) => name !== undefined);
}

/**
 * Finds or creates the database file and returns its real path. While a database is open, only the
 * driver may open this file: closing any other descriptor of it would drop the locks that SQLite
 * holds.
 */
export async function prepareFile(
  path: string,
  options: {
    readonly readOnly: boolean;
    readonly mustExist?: boolean | undefined;
    readonly warn: (warning: Warning) => void;
    readonly probe?: FileSystemProbe;
  },
): Promise<string> {
  checkPath(path);
  const absolute = resolve(path);
  if (options.mustExist !== true) refuseLogAlone(absolute, path);
  if (!existsSync(absolute)) {
    if (options.readOnly || options.mustExist === true) throw notFound(path);
    await createFile(absolute, path);
  }
  const real = realpathSync(absolute);
  if (real !== path) checkPath(real);
  if (!statSync(real).isFile())
    throw new HoldfastError(
      "DATABASE_PATH_INVALID",
      statSync(real).isDirectory()
        ? `"${path}" is a folder. Name the database file itself, for example "${path.replace(/\/$/, "")}/app.db".`
        : `"${path}" is not a regular file, so it cannot be a database. Name a file, for example "./app.db".`,
      { path },
    );
  judgeFileSystem(real, options);
  return real;
}

/** The longest path; no system accepts longer ones. */
const pathCharactersMax = 4_096;

/**
 * Refuses a path that a driver would open under a different name: one driver trims it, and invalid
 * Unicode becomes other text.
 *
 * @throws HoldfastError `DATABASE_PATH_INVALID`
 */
function checkPath(path: string): void {
  const invalid = (
    got: string,
    details: Readonly<Record<string, unknown>>,
    remedy = "",
  ): HoldfastError =>
    new HoldfastError(
      "DATABASE_PATH_INVALID",
      `Expected a path such as "./app.db" or ":memory:", got ${got}.${remedy}`,
      details,
    );
  if (typeof path !== "string") throw invalid(typeof path, { path });
  const scheme = /^\s*([a-z][a-z0-9+.-]+):/i.exec(path)?.[1];
  // A URL may hold a password, so it is not shown.
  if (scheme !== undefined)
    throw invalid(
      `a URL (${scheme}:…)`,
      { scheme },
      ' Postgres is opened by a URL that begins with postgres://, with openHoldfast or with openPostgres from "holdfast/postgres".',
    );
  const shown = excerpt(path);
  if (path === "") throw invalid(shown, { path });
  const flaw = flawOf(path);
  if (flaw === undefined) return;
  throw invalid(`${shown}, which ${flaw}`, { path: shown }, " Nothing was created.");
}

function flawOf(path: string): string | undefined {
  if (path.length > pathCharactersMax) return `has ${path.length} characters, too many for a path`;
  if (path.trim() !== path) return "begins or ends with white space";
  if (path.includes("\0")) return "contains U+0000";
  if (/^~[^/\\]*[/\\]/.test(path))
    return "begins with ~, which only shells expand to the home folder: use join(homedir(), …) with homedir() of node:os, or write ./~";
  return path.isWellFormed() ? undefined : "contains a lone surrogate";
}

/**
 * Refuses a log without its database. SQLite would take it for the leftover of another database and
 * overwrite it, with every transaction that only the log has. A new file never looks like that: it
 * has its first page before it has a log.
 */
function refuseLogAlone(absolute: string, path: string): void {
  // The log is checked first, since another process may create and fill the file in between.
  const left = logBytes(linkless(absolute));
  if (left === 0 || sizeOf(absolute) > 0) return;
  throw new HoldfastError(
    "LOG_WITHOUT_DATABASE",
    `"${path}" is ${existsSync(absolute) ? "empty" : "missing"}, but its write-ahead log "${path}-wal" exists and may hold the newest transactions. ` +
      `Put the database file back beside its log, from where it was moved or from a backup of the same moment. ` +
      `If you need none of its data, move the log away and open again. Nothing was changed.`,
    { path, log: `${path}-wal`, logBytes: left },
  );
}

function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}

/** The path with links resolved, since SQLite's other files lie beside a link's target. */
function linkless(absolute: string): string {
  return existsSync(absolute) ? realpathSync(absolute) : absolute;
}

function judgeFileSystem(
  real: string,
  options: {
    readonly warn: (warning: Warning) => void;
    readonly probe?: FileSystemProbe;
  },
): void {
  const type = (options.probe ?? probeFileSystem)(dirname(real));
  const network = networkFileSystems.get(type);
  if (network !== undefined)
    throw new HoldfastError(
      "NETWORK_FILE_SYSTEM",
      `"${real}" is on a network file system (${network}), whose locks SQLite cannot rely on. ` +
        "Put the file on a local disk, or use Postgres to share data between machines.",
      { path: real, fileSystem: network },
    );
  const doubtful = doubtfulFileSystems.get(type);
  if (doubtful !== undefined)
    options.warn({
      code: "FILE_SYSTEM_DOUBTFUL",
      message: `"${real}" is on ${doubtful}. Open it from only one side of that mount: SQLite's shared memory may not work across it.`,
    });
}

/** Creates a file that only its owner can access. SQLite gives -wal and -shm the same mode. */
async function createFile(absolute: string, path: string): Promise<void> {
  try {
    await makeFolder(dirname(absolute));
    closeSync(openSync(absolute, "wx", 0o600));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // Another process created the file first, which is just as good.
    if (code === "EEXIST" && existsSync(absolute)) return;
    throw new HoldfastError(
      code === "ENOSPC" ? "DISK_FULL" : "DATABASE_NOT_WRITABLE",
      `The database file "${path}" could not be created (${code ?? "unknown error"}). Check the folder's permissions and free space.`,
      { path, reason: code },
      { cause: error },
    );
  }
}

/** Creates a folder for its owner only, and missing parent folders. They survive power loss. */
export async function makeFolder(folder: string): Promise<void> {
  const firstCreated = makeFolders(folder, 0o700);
  if (firstCreated === undefined || process.platform === "win32") return;
  // A new folder survives power loss once its parent folder is synced.
  for (let created = folder; ; created = dirname(created)) {
    await syncFolder(dirname(created));
    if (created === firstCreated || created === dirname(created)) return;
  }
}

/** Syncs a folder off the event loop. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function notFound(path: string): HoldfastError {
  return new HoldfastError(
    "DATABASE_NOT_FOUND",
    `No database exists at "${path}", and this call does not create one. Check the path.`,
    { path },
  );
}

interface Registered {
  readonly driver: Driver;
  opens: number;
}

const registryKey = Symbol.for("holdfast.sqlite.files");

/**
 * Registers a file as open with a driver. A second copy of SQLite in the process would release the
 * first copy's locks at its first close. Another process could then delete the log, and
 * acknowledged writes with it.
 * @returns a function that unregisters the file.
 */
export function registerFile(real: string, driver: Driver): () => void {
  const shared = globalThis as { [registryKey]?: Map<string, Registered> };
  const registry = (shared[registryKey] ??= new Map());
  const { dev, ino } = statSync(real, { bigint: true });
  const key = `${dev}:${ino}`;
  const entry = registry.get(key) ?? { driver, opens: 0 };
  if (entry.driver.identity !== driver.identity)
    throw new HoldfastError(
      "DRIVER_CONFLICT",
      `"${real}" is already open in this process with another copy of SQLite (${entry.driver.name}, now ${driver.name}). ` +
        "Two copies would release each other's file locks and lose writes: use one driver for the file, or another process.",
      { path: real, open: entry.driver.name, wanted: driver.name },
    );
  entry.opens += 1;
  registry.set(key, entry);
  return () => {
    entry.opens -= 1;
    if (entry.opens === 0) registry.delete(key);
  };
}

/**
 * True when a reader must open before the writer. A writer that closes last copies the log into the
 * file and deletes it; a reader cannot. The reader is opened first and closed last, so a failed
 * open changes neither: of a damaged file the log may be all that is left. Beside a journal the
 * switch to a log was interrupted. Then the log is empty, and the file is unreadable until a writer
 * rolls the journal back.
 */
export function needsEarlyReader(real: string): boolean {
  return logBytes(real) > 0 && sizeOf(`${real}-journal`) === 0;
}

/** The size of the log in bytes; 0 when there is none. */
export function logBytes(real: string): number {
  return sizeOf(`${real}-wal`);
}
