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
  /** Larger attachments are refused; defaults to 256 MiB. */
  readonly bytesMax?: number;
}

/**
 * Keeps the bytes of attachments in files below a folder, for those too large
 * or too many for the database. Back the folder up after the database: what
 * the database refers to is then in the copy. Not for a folder that others
 * write to. The folder gets a file with an id of its own, which belongs to it:
 * attachments are looked for in the folder of that id only.
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
          `The file of attachment ${name} has ${found.size} bytes, more than the ${bytesMax} that may be read. Raise bytesMax.`,
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

/** A name has one writer, so its temporary file does too, and `remove` knows where it is. */
function temporary(path: string): string {
  return `${path}.tmp`;
}

function pathOf(root: string, name: string): string {
  if (!/^[0-9a-f]{64}\.[0-9a-f]+$/.test(name))
    throw optionInvalid("name", name, "a name that an intent has recorded");
  return join(root, "sha256", name.slice(0, 2), name);
}

/**
 * Nobody ever sees half a file, and what was acknowledged survives power loss.
 * Tells the hash of what was written, made piece by piece, so that others get
 * their turn meanwhile.
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

/** Folders that exist and whose entries, up to the root's own, are durable. */
class Folders {
  readonly #root: string;
  readonly #ready = new Map<string, Promise<void>>();

  constructor(root: string) {
    this.#root = root;
  }

  /** Everybody waits for the same flush: the folder may exist before it is durable. */
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
    // Also when somebody else has made it, who may not have flushed it yet.
    const highest = folder === this.#root ? (made ?? folder) : this.#root;
    const last = folder === this.#root ? dirname(highest) : highest;
    for (let at = dirname(folder); ; at = dirname(at)) {
      await syncFolder(at);
      if (at === last || at === dirname(at)) return;
    }
  }
}

async function syncFolder(folder: string): Promise<void> {
  // Windows cannot open folders, and keeps their entries by itself.
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
        `The disk for attachments is full; attachment ${id} was not stored. Free some space and put it again.`,
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
