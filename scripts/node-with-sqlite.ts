import { nodeOf } from "./node-of.ts";

/**
 * The Node binary for the tests of the node:sqlite driver: this one where it
 * has the module, else Node 24.
 */
export function nodeWithSqlite(): string {
  return hasSqlite(process.versions.node) ? process.execPath : nodeOf(24);
}

/** node:sqlite needs no flag from 22.13 on. */
export function hasSqlite(version: string): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return major > 22 || (major === 22 && minor >= 13);
}
