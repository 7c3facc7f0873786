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
 * A folder of session files remembers one number: the highest generation or
 * fence that any file in it has had. A file that is made anew begins above it,
 * so no handle or lease of an earlier file of the same session counts in it.
 *
 * Not the clock, which may be set back; and one number for all, so that nothing
 * tells which sessions there were.
 */
const markName = "holdfast-sessions.last";

/** What to lock while the mark is read and written. */
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
    `${markName} does not hold the number that tells how far the generations of this folder have come. ` +
      "Restore it from a backup, or write into it a number above all generations and fences that its sessions had.",
    { path },
  );
}

/** Durable before whatever counts on it. Never goes back. */
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
