import { existsSync } from "node:fs";
import path from "node:path";
import { HoldfastError } from "../../model/errors.ts";
import { isPostgresUrl, type HoldfastOptions } from "../../open/open-holdfast.ts";
import { findConfig, loadConfig, pathOf, type CliConfig } from "./config.ts";
import type { CliHost } from "../host.ts";

/** The options of every command. */
export interface GlobalOptions {
  readonly db?: string;
  readonly schema?: string;
  readonly config?: string;
  readonly json?: boolean;
  readonly debug?: boolean;
}

/** The database of a command. */
export interface Target {
  readonly pathOrUrl: string;
  /** The same for display, without a password. */
  readonly shown: string;
  readonly options: HoldfastOptions;
}

/** The default database of `holdfast init` and `holdfast dev`. */
const defaultDatabase = "holdfast.db";

/**
 * Finds the database: `--db` wins over `HOLDFAST_DB`, then comes the config
 * file, then a `holdfast.db` in the current folder that exists or may be
 * created. A config file runs code. So without `--config` it is loaded only
 * when nothing else names the database.
 *
 * @throws HoldfastError `OPTION_INVALID` when nothing names one, `CONFIG_INVALID`, `MODULE_NOT_LOADED`
 */
export async function targetOf(
  given: GlobalOptions,
  host: CliHost,
  { mayBeMade = false }: { readonly mayBeMade?: boolean } = {},
): Promise<Target> {
  const named = given.db ?? (host.env["HOLDFAST_DB"] || undefined);
  const config =
    named === undefined || given.config !== undefined ? await configOf(given, host) : undefined;
  const isDefault = mayBeMade || existsSync(path.join(host.cwd, defaultDatabase));
  const db = named ?? config?.db ?? (isDefault ? defaultDatabase : undefined);
  if (db === undefined) throw nothingNamed(config);
  if (db === ":memory:" || db === "")
    throw new HoldfastError(
      "OPTION_INVALID",
      db === ""
        ? "--db is empty. Name a file, such as ./app.db, or a postgres:// URL."
        : "A database in memory ends with the process that made it. Name a file, such as ./app.db.",
      { option: "db" },
    );
  const options = config?.options ?? {};
  const { schema } = given;
  return {
    pathOrUrl: isPostgresUrl(db) ? db : pathOf(db, host.cwd),
    shown: shownTarget(db, host.cwd),
    options:
      schema === undefined ? options : { ...options, postgres: { ...options.postgres, schema } },
  };
}

/** Loads the named config file, or the nearest one. */
export async function configOf(
  { config }: GlobalOptions,
  { cwd }: CliHost,
): Promise<CliConfig | undefined> {
  const file = config ?? findConfig(cwd);
  return file === undefined ? undefined : loadConfig(file, cwd);
}

function nothingNamed(config: CliConfig | undefined): HoldfastError {
  const where =
    config === undefined
      ? 'Name one with --db ./app.db or --db postgres://…, with HOLDFAST_DB, or in a holdfast.config.ts: export const db = "./app.db";'
      : `"${config.file}" exports no db. Add it there, or pass --db.`;
  return new HoldfastError("OPTION_INVALID", `No database was named. ${where}`, {
    option: "db",
  });
}

/** A path relative to the current folder, or a URL without secrets. */
export function shownTarget(pathOrUrl: string, cwd: string): string {
  if (!isPostgresUrl(pathOrUrl)) {
    const relative = path.relative(cwd, path.resolve(cwd, pathOrUrl));
    return relative.startsWith("..") ? path.resolve(cwd, pathOrUrl) : relative;
  }
  if (!URL.canParse(pathOrUrl)) return "postgres://…";
  // URL options may hold secrets too, so none is shown.
  const { username, host, pathname } = new URL(pathOrUrl);
  return `postgres://${username === "" ? "" : `${username}@`}${host}${pathname}`;
}
