import { closeSync, existsSync, openSync, realpathSync, statSync, statfsSync } from "node:fs";
import { open } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { makeFolders } from "../../host/folders.ts";
import { HoldfastError } from "../../model/errors.ts";
import { excerpt } from "../../model/values/excerpt.ts";
import type { Warning } from "../../sql/database.ts";
import type { Driver } from "./drivers/drivers.ts";

/** Where the locks of SQLite's several processes do not work, by `statfs` type. */
const networkFileSystems: ReadonlyMap<number, string> = new Map([
  [0x6969, "NFS"],
  [0x517b, "SMB"],
  [0xff534d42, "CIFS"],
  [0xfe534d42, "SMB2"],
  [0x5346414f, "AFS"],
  [0x73757245, "Coda"],
]);

/** Where they may work, and shared memory across a border may not. */
const doubtfulFileSystems: ReadonlyMap<number, string> = new Map([
  [0x65735546, "FUSE"],
  [0x01021997, "9p"],
]);

/** Where they do, as far as Linux has a number for it. */
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

/** What a folder is on; undefined where nobody knows a name for it. */
export function fileSystemOf(directory: string): string | undefined {
  if (process.platform !== "linux") return undefined;
  const type = probeFileSystem(directory);
  return [localFileSystems, doubtfulFileSystems, networkFileSystems]
    .map((names) => names.get(type))
    .find((name) => name !== undefined);
}

/**
 * Finds or makes the database file and answers with its real path. While a
 * database is open nothing but the driver may open this file: closing any
 * other descriptor of it would drop the locks that SQLite holds.
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
        : `"${path}" is not a regular file, so no database can be in it. Name another, for example "./app.db".`,
      { path },
    );
  judgeFileSystem(real, options);
  return real;
}

/** No system takes longer ones. */
const pathCharactersMax = 4_096;

/**
 * Refuses what a driver would open under another name than it was given: one
 * of them trims it, and text that is no Unicode becomes other text.
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
  throw invalid(`${shown}, which ${flaw}`, { path: shown }, " Nothing was made.");
}

function flawOf(path: string): string | undefined {
  if (path.length > pathCharactersMax)
    return `has ${path.length} characters, more than a path may have`;
  if (path.trim() !== path) return "begins or ends with white space";
  if (path.includes("\0")) return "has U+0000 in it";
  if (/^~[^/\\]*[/\\]/.test(path))
    return "begins with ~, which only shells make a home folder of: join it with homedir() of node:os, or write ./~";
  return path.isWellFormed() ? undefined : "has a lone surrogate in it";
}

/**
 * SQLite would take a log without its database for the remains of another one
 * and write over it, with every transaction that was only there. A new file
 * never looks like that: it has its first page before it has a log.
 */
function refuseLogAlone(absolute: string, path: string): void {
  // The log is looked at first: the file may be made and filled meanwhile.
  const left = logBytes(linkless(absolute));
  if (left === 0 || sizeOf(absolute) > 0) return;
  throw new HoldfastError(
    "LOG_WITHOUT_DATABASE",
    `"${path}" is ${existsSync(absolute) ? "empty" : "missing"}, but its write-ahead log "${path}-wal" is there and may hold the newest transactions. ` +
      `Put the database file back beside its log, from where it was moved or from a backup of the same moment. ` +
      `If nothing of it is needed, move the log away and open again. Nothing was changed.`,
    { path, log: `${path}-wal`, logBytes: left },
  );
}

function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}

/** SQLite's other files lie beside what a link leads to. */
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
      message: `"${real}" is on ${doubtful}. Use it from one side of that border only: SQLite's shared memory may not cross it.`,
    });
}

/** New files are the owner's alone; SQLite gives its -wal and -shm the same mode. */
async function createFile(absolute: string, path: string): Promise<void> {
  try {
    await makeFolder(dirname(absolute));
    closeSync(openSync(absolute, "wx", 0o600));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // Another process was faster, which is as good.
    if (code === "EEXIST" && existsSync(absolute)) return;
    throw new HoldfastError(
      code === "ENOSPC" ? "DISK_FULL" : "DATABASE_NOT_WRITABLE",
      `The database file "${path}" could not be created (${code ?? "unknown error"}). Check the folder's permissions and free space.`,
      { path, reason: code },
      { cause: error },
    );
  }
}

/** A folder of its owner's alone, and those it is in, unless they are there. They survive power loss. */
export async function makeFolder(folder: string): Promise<void> {
  const firstCreated = makeFolders(folder, 0o700);
  if (firstCreated === undefined || process.platform === "win32") return;
  // A new folder survives power loss once the one that it is in is synced.
  for (let created = folder; ; created = dirname(created)) {
    await syncFolder(dirname(created));
    if (created === firstCreated || created === dirname(created)) return;
  }
}

/** Off the event loop. */
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
    `There is no database at "${path}", and this open creates none. Check the path.`,
    { path },
  );
}

interface Registered {
  readonly driver: Driver;
  opens: number;
}

const registryKey = Symbol.for("holdfast.sqlite.files");

/**
 * Registers a file as open with a driver. A second copy of SQLite in the
 * process would, at its first close, release the first one's locks: another
 * process could then delete the log, and acknowledged writes with it.
 * @returns the way to give the file back.
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
 * A writer that closes last copies the log into the file and deletes it; a
 * reader cannot. It is opened first and undone last, so that an open that
 * fails leaves both as they are: of a damaged file the log may be all there is.
 * Beside a journal the switch to a log was cut short: the log is empty, and
 * the file cannot be read before a writer has rolled the journal back.
 */
export function needsEarlyReader(real: string): boolean {
  return logBytes(real) > 0 && sizeOf(`${real}-journal`) === 0;
}

/** How large its log is; 0 when there is none. */
export function logBytes(real: string): number {
  return sizeOf(`${real}-wal`);
}
