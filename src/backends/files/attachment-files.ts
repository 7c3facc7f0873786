import { mkdir, open, readFile, rename, rm, stat } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { byteTools } from "../../host/bytes.ts";
import { HoldfastError } from "../../model/errors.ts";
import {
  attachmentFailed,
  bytesPerStep,
  type ByteStore,
} from "../../stores/attachment/byte-store.ts";
import { optionInvalid, wholeNumber } from "../option-checks.ts";
import { checkFolder, folderId } from "./folder-id.ts";

export interface AttachmentFilesOptions {
  /** The size limit of an attachment in bytes. Defaults to 256 MiB. */
  readonly bytesMax?: number;
}

/**
 * Stores the bytes of attachments in files below a folder, for attachments that are too large or
 * too many for the database. Back up the folder after the database, so that the copy contains every
 * file that the database refers to. No other program may write to the folder. It gets a file with
 * its own id, and attachments are only looked up in the folder with that id.
 * @throws HoldfastError `ATTACHMENT_FOLDER_WRONG` when that file is missing
 * @example attachments(database, { bytes: attachmentFiles("./attachments") })
 */
export function attachmentFiles(folder: string, options: AttachmentFilesOptions = {}): ByteStore {
  if (typeof folder !== "string" || folder === "" || folder.includes("\0"))
    throw optionInvalid("folder", folder, "the path of a folder");
  const bytesMax = wholeNumber("bytesMax", options.bytesMax ?? 268_435_456);
  const root = resolve(folder);
  const id = folderId(root);
  const folders = new Folders(root);
  return {
    kind: `files:${id}`,
    isDurable: true,
    bytesMax,
    async put(name, bytes) {
      const path = pathOf(root, name);
      checkFolder(root, id);
      await folders.ready(dirname(path)).catch(refuse(name));
      return writeWhole(path, bytes).catch(refuse(name));
    },
    async get(name) {
      const path = pathOf(root, name);
      const found = await orNothing(stat(path));
      if (found === undefined) checkFolder(root, id);
      if (found === undefined) return undefined;
      if (found.size > bytesMax)
        throw new HoldfastError(
          "VALUE_TOO_LARGE",
          `The file of attachment ${name} has ${found.size} bytes, more than the limit of ${bytesMax}. Raise bytesMax.`,
          { size: found.size, limit: bytesMax },
        );
      const content = await orNothing(readFile(path));
      return content && new Uint8Array(content);
    },
    async remove(name) {
      const path = pathOf(root, name);
      checkFolder(root, id);
      await rm(path, { force: true });
      await rm(temporary(path), { force: true });
    },
  };
}

/**
 * The temporary file of a name. A name has one writer, so this file does too, and `remove` can find
 * it.
 */
function temporary(path: string): string {
  return `${path}.tmp`;
}

function pathOf(root: string, name: string): string {
  if (!/^[0-9a-f]{64}\.[0-9a-f]+$/.test(name))
    throw optionInvalid("name", name, "a name that an intent has recorded");
  return join(root, "sha256", name.slice(0, 2), name);
}

/**
 * Writes a file atomically and durably: no reader sees a partial file, and an acknowledged file
 * survives power loss. Returns the hash of the written bytes, computed in pieces so that the event
 * loop is not blocked.
 */
async function writeWhole(path: string, bytes: Uint8Array): Promise<string> {
  const hash = byteTools.sha256();
  const unfinished = temporary(path);
  try {
    const file = await open(unfinished, "wx", 0o600);
    try {
      for (let at = 0; at < bytes.length; at += bytesPerStep) {
        const piece = bytes.subarray(at, at + bytesPerStep);
        hash.add(piece);
        await file.writeFile(piece);
      }
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(unfinished, path);
    await syncFolder(dirname(path));
    return hash.hex();
  } catch (error) {
    await rm(unfinished, { force: true }).catch(() => undefined);
    throw error;
  }
}

/** Folders that exist, with durable entries up to the root's own. */
class Folders {
  readonly #root: string;
  readonly #ready = new Map<string, Promise<void>>();

  constructor(root: string) {
    this.#root = root;
  }

  /** Shares one flush among all callers, because the folder may exist before it is durable. */
  ready(folder: string): Promise<void> {
    let making = this.#ready.get(folder);
    if (making === undefined) {
      making = this.#make(folder);
      this.#ready.set(folder, making);
      making.catch(() => this.#ready.delete(folder));
    }
    return making;
  }

  async #make(folder: string): Promise<void> {
    if (folder !== this.#root) await this.ready(this.#root);
    const made = await mkdir(folder, { recursive: true, mode: 0o700 });
    // Also when another process created it, which may not have flushed it yet.
    const highest = folder === this.#root ? (made ?? folder) : this.#root;
    const last = folder === this.#root ? dirname(highest) : highest;
    for (let at = dirname(folder); ; at = dirname(at)) {
      await syncFolder(at);
      if (at === last || at === dirname(at)) return;
    }
  }
}

async function syncFolder(folder: string): Promise<void> {
  // Windows cannot open folders, and makes their entries durable itself.
  if (process.platform === "win32") return;
  const handle = await open(folder, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function orNothing<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}

function refuse(name: string): (error: unknown) => never {
  const id = name.slice(0, 64);
  return (error) => {
    const code = codeOf(error);
    if (code === "ENOSPC" || code === "EDQUOT")
      throw new HoldfastError(
        "DISK_FULL",
        `The disk for attachments is full; attachment ${id} was not stored. Free some space and store it again.`,
        { id },
        { cause: error },
      );
    throw attachmentFailed(
      id,
      `its file could not be written (${code ?? "unknown reason"})`,
      error,
    );
  };
}

function codeOf(error: unknown): string | undefined {
  const { code } = error as { readonly code?: unknown };
  return typeof code === "string" ? code : undefined;
}
