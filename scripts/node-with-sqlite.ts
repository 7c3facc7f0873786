import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import path from "node:path";
import { projectRoot } from "./project.ts";

const wantedMajor = 24;

/**
 * The Node binary for the tests of the node:sqlite driver: this one where it
 * has the module, else Node 24 from the registry, installed once into .cache/.
 * Never into node_modules, whose .bin would put it before `node` on the path
 * of every npm script.
 */
export function nodeWithSqlite(): string {
  if (hasSqlite(process.versions.node)) return process.execPath;
  const home = path.join(projectRoot, ".cache", `node${wantedMajor}`);
  const name = platformPackage();
  const binary = path.join(
    home,
    "node_modules",
    name,
    "bin",
    process.platform === "win32" ? "node.exe" : "node",
  );
  if (!answers(binary)) {
    console.log(`Installing ${name}@${wantedMajor} into .cache/ …`);
    install(home, `${name}@${wantedMajor}`);
  }
  if (answers(binary)) return binary;
  throw new Error(
    `${binary} does not answer as Node ${wantedMajor}. Delete ${home} and try again, or run the tests with Node ${wantedMajor}.`,
  );
}

/** node:sqlite needs no flag from 22.13 on. */
export function hasSqlite(version: string): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return major > 22 || (major === 22 && minor >= 13);
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

function install(home: string, what: string): void {
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
    { stdio: "inherit", shell: process.platform === "win32" },
  );
}

function answers(binary: string): boolean {
  if (!existsSync(binary)) return false;
  try {
    const version = execFileSync(binary, ["--version"], { encoding: "utf8" });
    return version.startsWith(`v${wantedMajor}.`);
  } catch {
    return false;
  }
}
