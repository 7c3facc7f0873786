import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { projectRoot } from "./project.ts";

/** Builds and packs the package as it would be published, without touching dist/ of the checkout. */
export function packed(folder: string): string {
  const source = path.join(folder, "source");
  const { files } = JSON.parse(readFileSync(path.join(projectRoot, "package.json"), "utf8")) as {
    files: readonly string[];
  };
  for (const file of ["package.json", "README.md", "LICENSE", ...files])
    if (file !== "dist" && !file.startsWith("!"))
      cpSync(path.join(projectRoot, file), path.join(source, file), { recursive: true });
  const build = ["--import", "tsx", "scripts/build.ts", path.join(source, "dist")];
  execFileSync(process.execPath, build, { cwd: projectRoot });
  return packedFrom(source, folder);
}

/** Packs the folder of a package.json. */
export function packedFrom(source: string, folder: string): string {
  const target = path.join(folder, "tarball");
  mkdirSync(target, { recursive: true });
  const name = npm(["pack", "--offline", "--silent", "--pack-destination", target], source);
  return path.join(target, name.trim());
}

export function npm(args: readonly string[], cwd: string): string {
  return execFileSync("npm", args, {
    cwd,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
    shell: process.platform === "win32",
  });
}
