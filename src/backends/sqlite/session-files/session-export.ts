import { existsSync, fsyncSync, closeSync, linkSync, openSync, rmSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { systemEntropy } from "../../../host/entropy.ts";
import { makeFolders } from "../../../host/folders.ts";
import { sha256Hex } from "../../../host/hash.ts";
import { HoldfastError, isHoldfastError } from "../../../model/errors.ts";
import { excerpt } from "../../../model/values/excerpt.ts";
import { parseSessionId } from "../../../model/ids/session-id.ts";
import { spokenKind } from "../../../model/values/spoken-kind.ts";
import { sessionFileName } from "../../../model/session/file-name.ts";
import {
  givenFunction,
  givenInvalid,
  givenObject,
  givenSignal,
  optionsOf,
} from "../../../model/shape.ts";
import type { Attachments } from "../../../stores/attachment/attachments.ts";
import type { Database } from "../../../sql/database.ts";
import { sessionContext } from "../../../stores/session/context.ts";
import { copySession, type CopyOptions } from "../../../stores/session/copy/copy.ts";
import { exportedSessions } from "../../../stores/session/copy/copy-out.ts";
import type { CreatedSession } from "../../../stores/session/create.ts";
import { sessionNamed } from "../../../stores/session-name.ts";
import type { SessionName } from "../../../stores/session-name.ts";
import { targetExists } from "../heavy/heavy-failures.ts";
import { openSqlite } from "../open.ts";
import type { SqliteOptions } from "../options.ts";

export interface TransferOptions {
  readonly signal?: AbortSignal;
  /** Called after every page of nodes. */
  readonly onProgress?: (soFar: { readonly nodes: number; readonly of: number }) => void;
  /** The attachments store of the given database, when their bytes are outside it. */
  readonly attachments?: Attachments;
  /** Options for opening the file. */
  readonly sqlite?: Pick<SqliteOptions, "driver" | "onWarning">;
}

/**
 * Writes a snapshot of a session to a new SQLite file: graph, checkpoint, usage, receipts and
 * committed attachments with their bytes. If the target is a folder, the file gets its default name
 * in it. Nothing is left behind unless the promise resolves. Works from any database.
 * @throws HoldfastError `TARGET_EXISTS`, `SESSION_NOT_FOUND`, `SESSION_DELETED`,
 * `TRANSACTION_CONFLICT`
 * @example const { path } = await exportSession(database, "chat-7", "./exports/");
 */
export async function exportSession(
  database: Database,
  session: SessionName,
  to: string,
  options: TransferOptions = {},
): Promise<{ readonly path: string }> {
  checkTransfer(options);
  const { id } = sessionNamed(session);
  const path = targetOf(to, id);
  const random = Buffer.from(systemEntropy.bytes(8)).toString("hex");
  const temporary = `${path}.tmp-${random}`;
  try {
    const file = await openSqlite(temporary, options.sqlite);
    try {
      await copySession(
        { database, attachments: options.attachments },
        session,
        { database: file },
        copyOptions(options),
      );
    } finally {
      await file.close();
    }
    place(temporary, path);
  } finally {
    for (const suffix of ["", "-wal", "-shm", "-journal"])
      rmSync(temporary + suffix, { force: true });
  }
  return { path };
}

/** Gives the finished file its name. Uses a link, which never replaces an existing file. */
function place(temporary: string, path: string): void {
  try {
    linkSync(temporary, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") throw targetExists(path);
    throw error;
  }
  if (process.platform === "win32") return;
  const folder = openSync(dirname(path), "r");
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}

function checkTransfer(given: TransferOptions): void {
  const { attachments, onProgress, signal, sqlite = {} } = optionsOf(given);
  givenFunction("onProgress", onProgress);
  givenSignal(signal);
  givenObject("sqlite", sqlite);
  if (attachments !== undefined && typeof attachments?.list !== "function")
    throw givenInvalid("attachments", "what attachments() returns", attachments);
}

/**
 * The path of the new file; creates its folder.
 * @throws HoldfastError `TARGET_EXISTS`, `DATABASE_PATH_INVALID`, `DATABASE_NOT_WRITABLE`,
 * `DISK_FULL`
 */
function targetOf(to: string, id: string): string {
  checkPath(to);
  try {
    const path = exportPath(to, id);
    if (existsSync(path)) throw targetExists(path);
    makeFolders(dirname(path), 0o700);
    return path;
  } catch (error) {
    throw folderFailure(to, error);
  }
}

function checkPath(to: string): void {
  if (typeof to === "string" && to !== "" && !to.includes("\0")) return;
  throw new HoldfastError(
    "DATABASE_PATH_INVALID",
    `Expected the path of a file or folder for the export; got ${spokenKind(to)}.`,
  );
}

function folderFailure(path: string, error: unknown): unknown {
  if (isHoldfastError(error)) return error;
  const { code } = error as NodeJS.ErrnoException;
  return new HoldfastError(
    code === "ENOSPC" ? "DISK_FULL" : "DATABASE_NOT_WRITABLE",
    `The folder of ${excerpt(path)} could not be created (${code ?? "unknown error"}); nothing was exported. Check the path, its permissions and free space.`,
    { path, reason: code },
    { cause: error },
  );
}

function exportPath(to: string, id: string): string {
  const path = resolve(to);
  const isFolder =
    /[/\\]$/.test(to) || statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
  return isFolder ? join(path, sessionFileName(id, sha256Hex)) : path;
}

/**
 * Imports a session into a database from a file that `exportSession` or `sessionFiles` made. It
 * becomes visible in one step at the end. If its id was used and deleted before, it becomes the
 * next generation. Importing the same file again finds the imported session: `existed` is then
 * true, and nothing was changed.
 * @throws HoldfastError `SESSION_FILE_INVALID`, `SESSION_EXISTS`, `DATABASE_NOT_FOUND` and others
 * of opening a file
 * @example const handle = await importSession(database, "./exports/chat-7.db");
 */
export async function importSession(
  database: Database,
  path: string,
  options: TransferOptions & { readonly id?: string } = {},
): Promise<CreatedSession> {
  checkTransfer(options);
  if (options.id !== undefined) parseSessionId(options.id);
  const file = await openSqlite(path, { ...options.sqlite, readOnly: true });
  try {
    // No value is decoded, so an import does not need the keys of encrypted values.
    const [only, another] = await file.read(exportedSessions(sessionContext(file)), { limit: 2 });
    if (only === undefined || another !== undefined)
      throw new HoldfastError(
        "SESSION_FILE_INVALID",
        `${excerpt(path)} holds ${only === undefined ? "no session" : "more than one session"}; an export holds exactly one. Nothing was imported.`,
        { path },
      );
    const { id, generation } = only;
    return await copySession(
      { database: file },
      { id, generation },
      { database, attachments: options.attachments },
      copyOptions(options),
    );
  } finally {
    await file.close();
  }
}

function copyOptions(options: TransferOptions & { readonly id?: string }): CopyOptions {
  const { signal, onProgress, id } = options;
  return { signal, onProgress, id };
}
