import { closeSync, openSync, readSync, statSync, type Stats } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { HoldfastError } from "../../model/errors.ts";
import { quoted } from "../text/quoted.ts";
import { isRecord } from "../../model/values/spoken-kind.ts";

/**
 * Loads a module of the user's: workflows, or a config file. What it throws
 * while it loads is kept as the cause.
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

/** A .ts whose package.json says no "type" is made CommonJS by tsx, whose exports Node gives as the default one. */
function named(module: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const { default: whole } = module;
  return isRecord(whole) && whole["__esModule"] === true ? whole : module;
}

/** A module may await what never comes: then Node would end without a word, with a code of its own. */
async function unlessStuck<T>(loading: Promise<T>): Promise<T> {
  let onIdle = (): void => undefined;
  const stuck = new Promise<never>((_, reject) => {
    onIdle = () => reject(new Error("it awaits something that never comes to an end"));
    process.once("beforeExit", onIdle);
  });
  try {
    return await Promise.race([loading, stuck]);
  } finally {
    process.off("beforeExit", onIdle);
  }
}

/** Its path. @throws HoldfastError `MODULE_NOT_LOADED` when there is no such file, or it is a folder or a database */
export function existingModule(file: string, cwd: string): string {
  const absolute = path.resolve(cwd, file);
  if (isDatabase(absolute))
    throw notLoaded(
      file,
      `it is a database, not a module. Say --db ${quoted(file)} and the module beside it, such as app.mts`,
    );
  if (isFile(absolute)) return absolute;
  throw notLoaded(
    file,
    isFolder(absolute)
      ? "it is a folder. Name a file in it that exports workflows"
      : "there is no such file. Check the path; it is taken from the current folder",
  );
}

/** By its name, or its first bytes: it may have any name. */
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
    return false; // What cannot be read is told by those who load it.
  }
}

/** True for what is there, or is named like a module: names of functions have no dots. */
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
    return undefined; // Not there, or a path that no file can have.
  }
}

/** By leaving the types out: without a flag from 22.18 on. */
export function nodeLoadsTypeScript(): boolean {
  const { typescript } = process.features as { typescript?: unknown };
  return Boolean(typescript);
}

let isLoadedBy = false;

/** Where Node cannot load TypeScript, tsx of the user's project can, if it is installed. */
async function loadTypeScriptBy(file: string): Promise<void> {
  if (isLoadedBy || !isTypeScript(file) || nodeLoadsTypeScript()) return;
  const tsx = tsxFrom(file);
  if (tsx === undefined) return;
  await import(/* @vite-ignore */ pathToFileURL(tsx).href);
  isLoadedBy = true;
}

/** What `--import tsx` loads; its API knows modules or CommonJS, and a .ts may be either. */
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
  "or install tsx in your project, which is then used: npm install --save-dev tsx; " +
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
  return `it failed while it was loaded: ${first.replace(/\.$/, "")}. Run it with node to see all of it, or repeat this with --debug`;
}

function notLoaded(file: string, why: string, cause?: unknown): HoldfastError {
  return new HoldfastError(
    "MODULE_NOT_LOADED",
    `"${file}" cannot be loaded: ${why}.`,
    { file },
    cause === undefined ? undefined : { cause },
  );
}
