import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { projectRoot } from "../../scripts/project.ts";

/** Builds and packs the package as it would be published, without touching dist/ of the checkout. */
export function packed(folder: string): string {
  const source = join(folder, "source");
  const { files } = JSON.parse(readFileSync(join(projectRoot, "package.json"), "utf8")) as {
    files: readonly string[];
  };
  for (const file of ["package.json", "README.md", "LICENSE", ...files])
    if (file !== "dist" && !file.startsWith("!"))
      cpSync(join(projectRoot, file), join(source, file), { recursive: true });
  execFileSync(process.execPath, ["--import", "tsx", "scripts/build.ts", join(source, "dist")], {
    cwd: projectRoot,
  });
  return packedFrom(source, folder);
}

/** Packs the folder of a package.json. */
export function packedFrom(source: string, folder: string): string {
  const place = join(folder, "tarball");
  mkdirSync(place, { recursive: true });
  const name = npm(["pack", "--offline", "--silent", "--pack-destination", place], source);
  return join(place, name.trim());
}

export function npm(args: readonly string[], cwd: string): string {
  return execFileSync("npm", args, {
    cwd,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
    shell: process.platform === "win32",
  });
}

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
