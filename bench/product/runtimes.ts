import { join } from "node:path";
import { installInto, nodeOf, versionOf } from "../../scripts/node-of.ts";
import { projectRoot } from "../../scripts/project.ts";

/** A runtime as a newcomer has it: the program, and how it installs packages. */
export interface Runtime {
  readonly binary: string;
  readonly version: string;
  readonly installs: "npm" | "bun";
}

const majors = [20, 22, 24, 26];

/** The runtimes that are measured, by name. They are found when they are asked for. */
export const runtimes: ReadonlyMap<string, () => Runtime> = new Map<string, () => Runtime>([
  ...majors.map((major) => [`node ${major}`, () => node(major)] as const),
  ["bun", bun],
]);

export function node(major: number): Runtime {
  const binary = nodeOf(major);
  return { binary, version: versionOf(binary) ?? "unknown", installs: "npm" };
}

/** Bun from the registry, installed once into .cache/. */
function bun(): Runtime {
  const home = join(projectRoot, ".cache", "bun");
  const platform = process.platform === "win32" ? "windows" : process.platform;
  const name = `@oven/bun-${platform}-${process.arch === "arm64" ? "aarch64" : process.arch}`;
  const binary = join(
    home,
    "node_modules",
    name,
    "bin",
    platform === "windows" ? "bun.exe" : "bun",
  );
  if (versionOf(binary) === undefined) installInto(home, name);
  const version = versionOf(binary);
  if (version === undefined) throw new Error(`${name} does not run here.`);
  return { binary, version, installs: "bun" };
}
