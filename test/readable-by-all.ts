import { chmodSync, cpSync, existsSync, linkSync, readdirSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";

/** Only root may become somebody else. */
export const isRoot: boolean = process.getuid?.() === 0;

/** Whether users without any rights of their own can read a file, or enter a folder. */
export function everyoneCanRead(location: string): boolean {
  return (statSync(location).mode & 0o004) !== 0 && everyoneCanReach(location);
}

function everyoneCanReach(location: string): boolean {
  const parent = path.dirname(location);
  if (parent === location) return true;
  return (statSync(parent).mode & 0o001) !== 0 && everyoneCanReach(parent);
}

/** The folder for temporary files, or a common one where it is for its owner alone. */
export function sharedTemporaryFolder(): string {
  const folders = [tmpdir(), "/tmp", "/var/tmp"];
  return folders.find(isShared) ?? tmpdir();
}

/** Whether processes of other users can use the files that tests make. */
export const temporaryFilesAreShared: boolean = isShared(tmpdir());

function isShared(folder: string): boolean {
  return existsSync(folder) && (statSync(folder).mode & 0o001) !== 0 && everyoneCanReach(folder);
}

/** Copies a file or a folder so that everyone can read it, whatever the modes of the source and the umask are. */
export function copyForEveryone(
  source: string,
  target: string,
  isWanted: (file: string) => boolean = () => true,
): void {
  cpSync(source, target, {
    recursive: true,
    verbatimSymlinks: true,
    filter: isWanted,
  });
  openToEveryone(target);
}

/** Lets everyone read what is here, and run what its owner may run. */
export function openToEveryone(location: string): void {
  const { mode } = statSync(location);
  chmodSync(location, mode | 0o444 | ((mode & 0o100) !== 0 ? 0o111 : 0));
  if (!statSync(location).isDirectory()) return;
  for (const entry of readdirSync(location, { withFileTypes: true }))
    if (!entry.isSymbolicLink()) openToEveryone(path.join(location, entry.name));
}

/** The same file under another name where the disk allows it: a copy of Node takes 100 MB. */
export function linkOrCopy(source: string, target: string): void {
  if ((statSync(source).mode & 0o005) === 0o005) {
    try {
      return linkSync(source, target);
    } catch {
      // Another disk, or one without links.
    }
  }
  copyForEveryone(source, target);
}
