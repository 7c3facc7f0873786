import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";

/** What all files beneath a folder hold, which is less than they take on a disk. */
export function bytesBeneath(folder: string): { files: number; bytes: number } {
  const sizes = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => statSync(join(entry.parentPath, entry.name)).size);
  return {
    files: sizes.length,
    bytes: sizes.reduce((sum, bytes) => sum + bytes, 0),
  };
}
