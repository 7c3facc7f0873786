import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import path from "node:path";
import { makeFolders } from "../../host/folders.ts";
import { HoldfastError } from "../../model/errors.ts";
import { nodeLoadsTypeScript } from "../modules/load-module.ts";
import { appText } from "./app-text.ts";

export interface FirstFile {
  /** The path relative to the current folder. */
  readonly file: string;
  /** The next commands, in order. */
  readonly next: readonly { readonly command: string; readonly what: string }[];
}

/** Names that block each other, since the version of Node decides which one is written. */
const names = ["app.mts", "app.mjs", "app.ts", "app.js"] as const;

/**
 * Writes a file with a workflow into a folder, which is created if missing.
 * Existing files stay unchanged.
 *
 * @throws HoldfastError `FILE_NOT_WRITTEN`
 */
export async function writeFirstFile(cwd: string, folder: string): Promise<FirstFile> {
  const target = path.resolve(cwd, folder);
  const name = nodeLoadsTypeScript() ? "app.mts" : "app.mjs";
  const taken = names.find((each) => existsSync(path.join(target, each)));
  if (taken !== undefined) throw notWritten(taken, target, "it is there");
  const file = path.join(target, name);
  try {
    makeFolders(target);
    await writeFile(file, appText(name), { flag: "wx" });
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw notWritten(name, target, code ?? message, error);
  }
  const shown = path.relative(cwd, target);
  return {
    file: path.join(shown, name),
    next: [
      ...(shown === "" ? [] : [{ command: `cd ${shown}`, what: "" }]),
      ...(isInstalled(target)
        ? []
        : [{ command: "npm install holdfast", what: "once per project" }]),
      { command: `node ${name}`, what: "runs it; kill it and run it again" },
      {
        command: `npx holdfast dev ${name}`,
        what: "shows its runs, and reloads the file on save",
      },
    ],
  };
}

function isInstalled(folder: string): boolean {
  try {
    createRequire(path.join(folder, "app.js")).resolve("holdfast");
    return true;
  } catch {
    return false;
  }
}

function notWritten(name: string, folder: string, why: string, cause?: unknown): HoldfastError {
  return new HoldfastError(
    "FILE_NOT_WRITTEN",
    cause === undefined
      ? `${name} already exists in ${folder}, and init overwrites nothing. Name another folder: npx holdfast init my-app`
      : `${name} could not be written into ${folder}: ${why}. Name a writable folder: npx holdfast init my-app`,
    { file: name, folder },
    cause === undefined ? undefined : { cause },
  );
}
