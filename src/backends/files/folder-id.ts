import {
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { systemEntropy } from "../../host/entropy.ts";
import { HoldfastError, isHoldfastError } from "../../model/errors.ts";
import { newToken } from "../../model/ids/token.ts";

/** The file with the id of this attachment folder. */
const marker = "holdfast-attachments.id";

/**
 * The id of an attachment folder, assigned once. It distinguishes two folders regardless of their
 * paths.
 *
 * @throws HoldfastError `ATTACHMENT_FOLDER_WRONG` when the folder has attachments and no id;
 * `ATTACHMENT_FAILED`, `DISK_FULL`.
 */
export function folderId(root: string): string {
  try {
    return knownOrNew(root);
  } catch (error) {
    if (isHoldfastError(error)) throw error;
    const { code } = error as NodeJS.ErrnoException;
    throw new HoldfastError(
      code === "ENOSPC" ? "DISK_FULL" : "ATTACHMENT_FAILED",
      `The folder of attachments cannot be used (${code ?? "unknown reason"}). Check its path, its permissions and its disk.`,
      { reason: code },
      { cause: error },
    );
  }
}

function knownOrNew(root: string): string {
  const known = readId(root);
  if (known !== undefined) return known;
  if (existsSync(join(root, "sha256"))) throw idMissing();
  mkdirSync(root, { recursive: true, mode: 0o700 });
  const id = newToken(systemEntropy);
  const unfinished = join(root, `${marker}.tmp-${id}`);
  const file = openSync(unfinished, "wx", 0o600);
  try {
    writeSync(file, id);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  try {
    // A link never replaces a file, so of two processes that start at once only one sets the id.
    linkSync(unfinished, join(root, marker));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  } finally {
    rmSync(unfinished, { force: true });
  }
  return readId(root) ?? id;
}

/**
 * Refuses a folder that is no longer the original, for example one that was unmounted or replaced.
 */
export function checkFolder(root: string, id: string): void {
  if (readId(root) !== id) throw idMissing();
}

function readId(root: string): string | undefined {
  try {
    return readFileSync(join(root, marker), "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

function idMissing(): HoldfastError {
  return new HoldfastError(
    "ATTACHMENT_FOLDER_WRONG",
    `The folder of attachments has no file ${marker}, or the file of another folder, so its attachments are not in it. ` +
      "Check that it is mounted, or restore it with that file from a backup; nothing was changed.",
    {},
  );
}
