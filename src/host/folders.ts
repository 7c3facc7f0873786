import { mkdirSync, statSync } from "node:fs";
import { dirname } from "node:path";

/**
 * Makes a folder and those that it is in, as `mkdir -p` does, and ends: where
 * a folder says that what was to be made in it is not there, as those of
 * `/proc` do, `recursive` of Node tries again for ever.
 *
 * @returns the outermost one that was made; undefined when all were there.
 */
export function makeFolders(folder: string, mode?: number): string | undefined {
  if (isFolder(folder)) return undefined;
  const parent = dirname(folder);
  const first = parent === folder ? undefined : makeFolders(parent, mode);
  try {
    mkdirSync(folder, { mode });
  } catch (error) {
    // Another process may have been faster, which is as good.
    if (!isFolder(folder)) throw error;
    return first;
  }
  return first ?? folder;
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false; // Not there, or nothing that a folder can be in.
  }
}
