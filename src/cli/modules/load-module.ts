import { closeSync, openSync, readSync, statSync, type Stats } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { HoldfastError } from "../../model/errors.ts";
import { quoted } from "../text/quoted.ts";
import { isRecord } from "../../model/values/spoken-kind.ts";

/**
 * Loads a user's module: workflows, or a config file. An error that it throws
 * while loading is kept as the cause.
 *
 * @throws HoldfastError `MODULE_NOT_LOADED`, which says how to load TypeScript where this Node cannot
 */
export async function loadModule(
  file: string,
  cwd: string,
): Promise<Readonly<Record<string, unknown>>> {
  const absolute = existingModule(file, cwd);
  try {
    await loadTypeScriptBy(absolute);
    const url = pathToFileURL(absolute).href;
    return named(
      await unlessStuck(import(/* @vite-ignore */ url) as Promise<Record<string, unknown>>),
    );
  } catch (error) {
    if (isTypeScript(absolute) && isAboutTypeScript(error))
      throw notLoaded(file, howToLoadTypeScript, error);
    throw notLoaded(file, reasonOf(error), error);
  }
}

/** Unwraps a CommonJS module. Without a "type" in package.json, tsx compiles .ts to CommonJS, and Node returns its exports as the default. */
function named(module: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const { default: whole } = module;
  return isRecord(whole) && whole["__esModule"] === true ? whole : module;
}

/** Rejects if a module awaits a promise that never settles. Node would otherwise exit silently, with its own code. */
async function unlessStuck<T>(loading: Promise<T>): Promise<T> {
  let onIdle = (): void => undefined;
  const stuck = new Promise<never>((_, reject) => {
    onIdle = () => reject(new Error("it awaits a promise that never settles"));
    process.once("beforeExit", onIdle);
  });
  try {
    return await Promise.race([loading, stuck]);
  } finally {
    process.off("beforeExit", onIdle);
  }
}

/** The path of a module. @throws HoldfastError `MODULE_NOT_LOADED` if the file is missing, a folder or a database */
export function existingModule(file: string, cwd: string): string {
  const absolute = path.resolve(cwd, file);
  if (isDatabase(absolute))
    throw notLoaded(
      file,
      `it is a database, not a module. Pass --db ${quoted(file)} and a module, such as app.mts`,
    );
  if (isFile(absolute)) return absolute;
  throw notLoaded(
    file,
    isFolder(absolute)
      ? "it is a folder. Name a file in it that exports workflows"
      : "the file does not exist. Check the path, which is relative to the current folder",
  );
}

/** Detects a database by its name or its first bytes, since it may have any name. */
function isDatabase(absolute: string): boolean {
  const header = "SQLite format 3\0";
  if (!isFile(absolute)) return false;
  if (/\.(db|sqlite3?)$/i.test(absolute)) return true;
  try {
    const file = openSync(absolute, "r");
    try {
      const found = Buffer.alloc(header.length);
      readSync(file, found, 0, found.length, 0);
      return found.toString("latin1") === header;
    } finally {
      closeSync(file);
    }
  } catch {
    return false; // Loading reports an unreadable file.
  }
}

/** True for an existing file, or a name like a module's: names of functions have no dots. */
export function isModuleFile(text: string, cwd: string): boolean {
  return /\.[cm]?[jt]sx?$/.test(text) || isFile(path.resolve(cwd, text));
}

function isFile(absolute: string): boolean {
  return statsOf(absolute)?.isFile() === true;
}

function isFolder(absolute: string): boolean {
  return statsOf(absolute)?.isDirectory() === true;
}

function statsOf(absolute: string): Stats | undefined {
  try {
    return statSync(absolute);
  } catch {
    return undefined; // Missing, or an impossible path.
  }
}

/** True from Node 22.18 on, which strips types without a flag. */
export function nodeLoadsTypeScript(): boolean {
  const { typescript } = process.features as { typescript?: unknown };
  return Boolean(typescript);
}

let isLoadedBy = false;

/** Loads tsx of the user's project, if installed, for a Node that cannot load TypeScript. */
async function loadTypeScriptBy(file: string): Promise<void> {
  if (isLoadedBy || !isTypeScript(file) || nodeLoadsTypeScript()) return;
  const tsx = tsxFrom(file);
  if (tsx === undefined) return;
  await import(/* @vite-ignore */ pathToFileURL(tsx).href);
  isLoadedBy = true;
}

/** The file that `--import tsx` loads. The API of tsx handles modules or CommonJS, but a .ts may be either. */
function tsxFrom(file: string): string | undefined {
  try {
    const require = createRequire(file);
    const { exports } = require("tsx/package.json") as {
      exports: Readonly<Record<string, unknown>>;
    };
    const folder = path.dirname(require.resolve("tsx/package.json"));
    const target = exports["."];
    return typeof target === "string" ? path.join(folder, target) : undefined;
  } catch {
    return undefined; // Not installed.
  }
}

const howToLoadTypeScript =
  `this Node (${process.version}) cannot load TypeScript. Use Node 22.18 or newer, ` +
  "or install tsx in your project (npm install --save-dev tsx), which is then used; " +
  "or name a .mjs file";

function isTypeScript(file: string): boolean {
  return /\.[cm]?tsx?$/.test(file);
}

function isAboutTypeScript(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return (
    code === "ERR_UNKNOWN_FILE_EXTENSION" ||
    code === "ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX" ||
    code === "ERR_UNSUPPORTED_NODE_MODULES_TYPE_STRIPPING"
  );
}

function reasonOf(error: unknown): string {
  const said = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  const [first = ""] = said.split("\n");
  return `it failed while loading: ${first.replace(/\.$/, "")}. Run it with node to see the whole error, or repeat this command with --debug`;
}

function notLoaded(file: string, why: string, cause?: unknown): HoldfastError {
  return new HoldfastError(
    "MODULE_NOT_LOADED",
    `"${file}" cannot be loaded: ${why}.`,
    { file },
    cause === undefined ? undefined : { cause },
  );
}
