import { mkdirSync, statSync } from "node:fs";
import { dirname } from "node:path";

/**
 * Makes a folder and its missing parents, as `mkdir -p` does. It always terminates. Node's
 * `recursive` option retries forever where a folder claims that its new child does not exist, as
 * folders in `/proc` do.
 *
 * @returns the outermost folder that was made; undefined when all existed.
 */
export function makeFolders(folder: string, mode?: number): string | undefined {
  if (isFolder(folder)) return undefined;
  const parent = dirname(folder);
  const first = parent === folder ? undefined : makeFolders(parent, mode);
  try {
    mkdirSync(folder, { mode });
  } catch (error) {
    // Another process may have made the folder first.
    if (!isFolder(folder)) throw error;
    return first;
  }
  return first ?? folder;
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false; // Missing, or not a folder.
  }
}
