import {
  closeSync,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { HoldfastError } from "../../../model/errors.ts";

/**
 * A folder of session files remembers one number: the highest generation or fence of any file ever
 * in it. A new file begins above it, so no handle or lease of an earlier file of the same session
 * is valid in it.
 *
 * The clock would not do, since it may be set back. There is one number for all files, so that
 * nothing reveals which sessions existed.
 */
const markName = "holdfast-sessions.last";

/** The path to lock while the mark is read and written. */
export function markOf(folder: string): string {
  return join(folder, markName);
}

/** @throws HoldfastError `SESSION_FILE_INVALID` */
export function readMark(folder: string): number {
  const path = markOf(folder);
  const text = contentOf(path);
  if (text === undefined) return 0;
  const mark = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
  if (Number.isSafeInteger(mark)) return mark;
  throw new HoldfastError(
    "SESSION_FILE_INVALID",
    `${markName} does not hold a number, so the highest generation of this folder is unknown. ` +
      "Restore it from a backup, or write a number into it that is above all generations and fences of its sessions.",
    { path },
  );
}

/** Raises the mark, durably, before anything depends on it. Never lowers it. */
export function raiseMark(folder: string, atLeast: number): void {
  if (atLeast <= readMark(folder)) return;
  const path = markOf(folder);
  const unfinished = `${path}.tmp`;
  try {
    const file = openSync(unfinished, "w", 0o600);
    try {
      writeSync(file, String(atLeast));
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(unfinished, path);
  } finally {
    rmSync(unfinished, { force: true });
  }
  if (process.platform === "win32") return;
  const place = openSync(folder, "r");
  try {
    fsyncSync(place);
  } finally {
    closeSync(place);
  }
}

function contentOf(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
