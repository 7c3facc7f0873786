import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import path from "node:path";
import { projectRoot } from "./project.ts";

/**
 * The binary of a major version of Node: this one if it is of that version,
 * else the newest from the registry, installed once into .cache/. Never into
 * node_modules, whose .bin would put it before `node` on the path of every npm
 * script.
 */
export function nodeOf(major: number): string {
  if (process.versions.node.startsWith(`${major}.`)) return process.execPath;
  const home = path.join(projectRoot, ".cache", `node${major}`);
  const name = platformPackage();
  const binary = path.join(
    home,
    "node_modules",
    name,
    "bin",
    process.platform === "win32" ? "node.exe" : "node",
  );
  const answers = (): boolean => versionOf(binary)?.startsWith(`v${major}.`) ?? false;
  if (!answers()) {
    console.error(`Installing ${name}@${major} into .cache/ …`);
    installInto(home, `${name}@${major}`);
  }
  if (answers()) return binary;
  throw new Error(
    `${binary} does not answer as Node ${major}. Delete ${home} and try again, or use Node ${major}.`,
  );
}

/**
 * The package holding the binary itself. The package `node` would fetch this
 * one from an install script, which npm may be told not to run.
 */
function platformPackage(): string {
  const platform = process.platform === "win32" ? "win" : process.platform;
  const prefix = platform === "darwin" && process.arch === "arm64" ? "node-bin" : "node";
  return `${prefix}-${platform}-${process.arch}`;
}

/** Installs one package into a folder of .cache/. */
export function installInto(home: string, what: string): void {
  execFileSync(
    "npm",
    [
      "install",
      "--prefix",
      home,
      "--no-save",
      "--no-package-lock",
      "--no-audit",
      "--no-fund",
      what,
    ],
    { stdio: ["ignore", 2, 2], shell: process.platform === "win32" },
  );
}

/** The answer of a binary to `--version`; undefined when there is none. */
export function versionOf(binary: string): string | undefined {
  if (!existsSync(binary)) return undefined;
  try {
    return execFileSync(binary, ["--version"], { encoding: "utf8" }).trim();
  } catch {
    return undefined;
  }
}
