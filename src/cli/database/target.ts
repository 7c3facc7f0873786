import { existsSync } from "node:fs";
import path from "node:path";
import { HoldfastError } from "../../model/errors.ts";
import { isPostgresUrl, type HoldfastOptions } from "../../open/open-holdfast.ts";
import { findConfig, loadConfig, pathOf, type CliConfig } from "./config.ts";
import type { CliHost } from "../host.ts";

/** The options that every command has. */
export interface GlobalOptions {
  readonly db?: string;
  readonly schema?: string;
  readonly config?: string;
  readonly json?: boolean;
  readonly debug?: boolean;
}

/** The database that a command is about. */
export interface Target {
  readonly pathOrUrl: string;
  /** The same for people: never with a password. */
  readonly shown: string;
  readonly options: HoldfastOptions;
}

/** What `holdfast init` writes and `holdfast dev` makes where nothing else is named. */
const defaultDatabase = "holdfast.db";

/**
 * `--db` wins over `HOLDFAST_DB`, which wins over the config file, and that
 * over a `holdfast.db` in the current folder: one that is there, or may be
 * made. A config file runs code, so one that is not asked for by `--config` is
 * only loaded when nothing else names the database.
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
        : "A database in memory is gone with the process that made it. Name a file, such as ./app.db.",
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

/** The config file that is named, or the nearest one. */
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
      ? 'Name one with --db ./app.db or --db postgres://…, by HOLDFAST_DB, or in a holdfast.config.ts: export const db = "./app.db";'
      : `"${config.file}" exports no db. Add it there, or give --db.`;
  return new HoldfastError("OPTION_INVALID", `Which database? ${where}`, {
    option: "db",
  });
}

/** A path from here, or a URL without anything secret. */
export function shownTarget(pathOrUrl: string, cwd: string): string {
  if (!isPostgresUrl(pathOrUrl)) {
    const relative = path.relative(cwd, path.resolve(cwd, pathOrUrl));
    return relative.startsWith("..") ? path.resolve(cwd, pathOrUrl) : relative;
  }
  if (!URL.canParse(pathOrUrl)) return "postgres://…";
  // Options of a URL may hold secrets too, so none of them is shown.
  const { username, host, pathname } = new URL(pathOrUrl);
  return `postgres://${username === "" ? "" : `${username}@`}${host}${pathname}`;
}
