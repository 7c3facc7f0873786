import { existsSync } from "node:fs";
import path from "node:path";
import { HoldfastError } from "../../model/errors.ts";
import { isRecord } from "../../model/values/spoken-kind.ts";
import type { HoldfastOptions } from "../../open/open-holdfast.ts";
import { loadModule } from "../modules/load-module.ts";

/** A project's `holdfast.config.ts`, `.mts`, `.mjs` or `.js`. */
export interface CliConfig {
  readonly file: string;
  /** A path from the folder of the file, or a URL. */
  readonly db: string | undefined;
  /** For commands that run code. Not checked here. */
  readonly functions: readonly unknown[] | undefined;
  /** Options for opening the database: schema, payload codec, driver. */
  readonly options: HoldfastOptions;
}

const names = ["ts", "mts", "mjs", "js"].map((end) => `holdfast.config.${end}`);

/** The nearest config file, from a folder upwards. */
export function findConfig(folder: string): string | undefined {
  for (let at = path.resolve(folder); ; at = path.dirname(at)) {
    const found = names.find((name) => existsSync(path.join(at, name)));
    if (found !== undefined) return path.join(at, found);
    if (path.dirname(at) === at) return undefined;
  }
}

/**
 * Loads a config file: what it exports by name, or by default.
 *
 * @throws HoldfastError `MODULE_NOT_LOADED`, `CONFIG_INVALID`
 */
export async function loadConfig(file: string, cwd: string): Promise<CliConfig> {
  const absolute = path.resolve(cwd, file);
  const module = await loadModule(absolute, cwd);
  const found = module["default"] ?? module;
  if (!isRecord(found)) throw invalid(file, "it must export an object with db and functions");
  const { db, functions, options } = found;
  if (db !== undefined && (typeof db !== "string" || db === ""))
    throw invalid(file, "db must be a path or a postgres:// URL");
  if (functions !== undefined && !Array.isArray(functions))
    throw invalid(file, "functions must be a list of workflows and activities");
  if (options !== undefined && !isRecord(options))
    throw invalid(file, "options must be an object of openHoldfast options");
  return {
    file: absolute,
    db: db === undefined ? db : pathOf(db, path.dirname(absolute)),
    functions,
    options: options ?? {},
  };
}

/** Resolves a path. A URL, or a text with leading white space, stays unchanged for the database to accept or refuse. */
export function pathOf(db: string, folder: string): string {
  return /^([a-z][a-z0-9+.-]+:|\s)/i.test(db) ? db : path.resolve(folder, db);
}

function invalid(file: string, why: string): HoldfastError {
  return new HoldfastError(
    "CONFIG_INVALID",
    `"${file}" is an invalid config file: ${why}. Write, for example: export const db = "./app.db";`,
    { file },
  );
}
