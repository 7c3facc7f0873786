import {
  mkdtempSync,
  readFileSync,
  readdirSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { build } from "esbuild";
import type { Plugin } from "esbuild";
import {
  copyForEveryone,
  everyoneCanRead,
  isRoot,
  linkOrCopy,
  openToEveryone,
  sharedTemporaryFolder,
} from "./readable-by-all.ts";

const root = path.join(import.meta.dirname, "..");
const variable = "HOLDFAST_TEST_CHILDREN";
const nodeVariable = "HOLDFAST_TEST_CHILDREN_NODE";

/**
 * Bundles the scripts of the processes that tests start: each of hundreds of
 * processes would take half a second to load TypeScript, and a quarter of one
 * to load some two hundred modules one by one.
 */
export async function setup(): Promise<void> {
  if (process.env[variable] !== undefined) return;
  removeLeftovers();
  const output = newOutput();
  await build({
    absWorkingDir: root,
    entryPoints: [...scripts()],
    outbase: root,
    outdir: output,
    bundle: true,
    splitting: true,
    packages: "external",
    platform: "node",
    format: "esm",
    target: "es2023",
    tsconfig: path.join(root, "tsconfig.json"),
    logLevel: "warning",
    plugins: [keepingPlaces(output)],
  });
  writeFileSync(path.join(output, "package.json"), '{ "type": "module" }');
  bringPackages(output);
  process.env[variable] = output;
}

function newOutput(): string {
  const parent = sharedTemporaryFolder();
  return mkdtempSync(path.join(parent, `holdfast-children-${process.pid}-`));
}

/**
 * Bundles leave packages outside. As root some children run as another user,
 * whom a checkout or a Node in a private folder keeps out: then copies of both
 * go with the bundles.
 */
function bringPackages(output: string): void {
  const source = path.join(root, "node_modules");
  const target = path.join(output, "node_modules");
  if (!isRoot) return symlinkSync(source, target, "junction");
  for (const name of childPackages)
    copyForEveryone(path.join(source, name), path.join(target, name), isNeeded);
  openToEveryone(output);
  const node = realpathSync(process.execPath);
  if (everyoneCanRead(node)) return;
  process.env[nodeVariable] = path.join(output, "node");
  linkOrCopy(node, path.join(output, "node"));
}

const childPackages = [
  "better-sqlite3",
  "bindings",
  "file-uri-to-path",
  "croner",
  "postgres",
  "hono",
  "@hono/node-server",
];

/** Not what building better-sqlite3 leaves: sources and objects of 20 MB. */
function isNeeded(file: string): boolean {
  return !/better-sqlite3\/(deps|src|build\/Release\/(obj|obj\.target|\w+\.a))$/.test(file);
}

/** Whatever could be started; what is only imported by others does no harm. */
function scripts(): readonly string[] {
  const folders = ["test/crash", "test/sqlite", "examples"].flatMap((folder) =>
    readdirSync(path.join(root, folder), { recursive: true, encoding: "utf8" })
      .filter((file) => /(?<!\.test|\.d)\.ts$/.test(file))
      .map((file) => path.join(folder, file)),
  );
  return [
    ...folders,
    "bench/processes/appender.ts",
    "bench/registry/waiter.ts",
    "bench/runtime/worker.ts",
  ];
}

/** Has a script that names others beside itself find them where they are as JavaScript. */
function keepingPlaces(output: string): Plugin {
  return {
    name: "keeping-places",
    setup(building) {
      building.onLoad({ filter: /\.ts$/ }, ({ path: file }) => {
        if (file.startsWith(path.join(root, "src"))) return undefined;
        const text = readFileSync(file, "utf8");
        if (!text.includes("import.meta.url")) return undefined;
        const place = path.join(output, path.relative(root, file)).replace(/\.ts$/, ".js");
        const url = JSON.stringify(pathToFileURL(place).href);
        const scripted = text.replaceAll(
          /(?<=new URL\("[^"]+)\.ts(?=", import\.meta\.url\))/g,
          ".js",
        );
        return {
          contents: scripted.replaceAll(/\bimport\.meta\.url\b(?!")/g, url),
          loader: "ts",
        };
      });
    },
  };
}

export function teardown(): void {
  const output = process.env[variable];
  delete process.env[variable];
  delete process.env[nodeVariable];
  if (output !== undefined) rmSync(output, { recursive: true, force: true });
}

/** Of runs of this user that were killed. */
function removeLeftovers(): void {
  const parent = sharedTemporaryFolder();
  for (const name of readdirSync(parent)) {
    const [, pid] = /^holdfast-children-(\d+)-/.exec(name) ?? [];
    if (pid === undefined || isAlive(Number(pid))) continue;
    const left = path.join(parent, name);
    const owner = statSync(left, { throwIfNoEntry: false })?.uid;
    if (owner === process.getuid?.()) rmSync(left, { recursive: true, force: true });
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** Where a script of test/ is as JavaScript: `compiled("crash/note-writer.ts")`. */
export function compiled(script: string, folder = "test"): string {
  const output = process.env[variable];
  if (output === undefined)
    throw new Error("Only the projects that start processes have them compiled.");
  return path.join(output, folder, script.replace(/\.ts$/, ".js"));
}

/** The Node for children of another user: this one, or a copy where only its owner can reach it. */
export function nodeForEveryone(): string {
  return process.env[nodeVariable] ?? process.execPath;
}
