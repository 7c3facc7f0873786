import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { nodeOf } from "../../scripts/node-of.ts";
import { driverFlaw } from "../../src/backends/sqlite/drivers/driver-flaws.ts";
import { loadBetterSqlite3, loadDriver } from "../../src/backends/sqlite/drivers/drivers.ts";
import type { Driver } from "../../src/backends/sqlite/drivers/drivers.ts";
import type { Warning } from "../../src/kernel.ts";
import { compiled } from "../compile-children.ts";
import { rejection } from "../conformance/backend.ts";
import { driverName, withFolder } from "./place.ts";
import type { Folder } from "./place.ts";

/** The loaders of an app in this folder, with this for node:sqlite. */
const loadersIn = (folder: Folder, nodeSqlite: () => Driver) => ({
  "better-sqlite3": () => loadBetterSqlite3(createRequire(folder.file("app.js"))),
  "node:sqlite": nodeSqlite,
});

/** Refuses as an app in this folder would be refused, on a Node without node:sqlite. */
const refusalIn = (folder: Folder) =>
  rejection(
    (async () =>
      loadDriver(
        undefined,
        undefined,
        loadersIn(folder, () => {
          throw new Error("No such built-in module: node:sqlite");
        }),
      ))(),
  );

/** A package that fails as the real one does when its first connection loads the addon. */
function install(
  folder: Folder,
  failure: { readonly code?: string; readonly message: string },
  engine = "20.x || 22.x",
): void {
  const place = folder.file("node_modules/better-sqlite3");
  mkdirSync(place, { recursive: true });
  writeFileSync(
    join(place, "package.json"),
    JSON.stringify({ version: "13.0.3", engines: { node: engine } }),
  );
  writeFileSync(
    join(place, "index.js"),
    `module.exports = class { constructor() { throw Object.assign(new Error(${JSON.stringify(failure.message)}), ${JSON.stringify(failure)}); } };`,
  );
}

const isOldNode = Number.parseInt(process.versions.node, 10) < 22;

const rebuild =
  "Run `npm rebuild better-sqlite3` (with `--ignore-scripts=false` where npm is set to skip install scripts), or use Node 22.13 or newer, which has node:sqlite built in.";

describe("a missing driver", () => {
  test("that is not installed is to be installed", () =>
    withFolder(async (folder) => {
      const error = await refusalIn(folder);
      expect(error).toMatchObject({
        code: "DRIVER_MISSING",
        message:
          "No SQLite driver could be loaded (better-sqlite3: not installed; node:sqlite: No such built-in module: node:sqlite). " +
          `Run \`npm install better-sqlite3${isOldNode ? "@12" : ""}\`, or use Node 22.13 or newer, which has node:sqlite built in.`,
      });
    }));

  test.each([
    ["20.19.0", "Run `npm install better-sqlite3@12`"],
    ["22.12.0", "Run `npm install better-sqlite3`"],
    ["26.0.0", "Run `npm install better-sqlite3`"],
  ])("is to be installed on Node %s in a version that runs there: %s", (node, remedy) => {
    const error = Object.assign(new Error("Cannot find module 'better-sqlite3'"), {
      code: "MODULE_NOT_FOUND",
    });
    expect(driverFlaw("better-sqlite3", error, node)).toEqual({
      isAbsent: true,
      reason: "not installed",
      remedy,
    });
  });

  test("is missing in the words of Yarn too, and not when a file of it is", () => {
    const missing = (message: string) =>
      driverFlaw("better-sqlite3", Object.assign(new Error(message), { code: "MODULE_NOT_FOUND" }));
    expect(
      missing(
        "holdfast tried to access better-sqlite3 (a peer dependency) but it isn't provided by your application",
      ),
    ).toMatchObject({ isAbsent: true, reason: "not installed" });
    for (const message of [
      "Cannot find module 'bindings'\nRequire stack:\n- /app/node_modules/better-sqlite3/lib/database.js",
      "Cannot find module '/app/node_modules/better-sqlite3/build/Release/better_sqlite3.node'",
    ])
      expect(missing(message).isAbsent).toBeUndefined();
  });

  test("whose install script was skipped is to be built", () =>
    withFolder(async (folder) => {
      // What `npm install --ignore-scripts` leaves: all files but the addon.
      const real = join(import.meta.dirname, "../../node_modules");
      for (const name of ["better-sqlite3", "bindings", "file-uri-to-path"])
        cpSync(join(real, name), folder.file(`node_modules/${name}`), {
          recursive: true,
          filter: (file) => !/better-sqlite3\/(build|deps|src)$/.test(file),
        });
      const { message } = await refusalIn(folder);
      expect(message).toContain("better-sqlite3: installed, but its addon was not built;");
      expect(message).toContain(rebuild);
    }));

  test.each([
    [
      "was built for another Node",
      {
        code: "ERR_DLOPEN_FAILED",
        message:
          "The module '/app/better_sqlite3.node'\nwas compiled against a different Node.js version using\nNODE_MODULE_VERSION 115. This version of Node.js requires\nNODE_MODULE_VERSION 137. Please try re-compiling",
      },
      "its addon was built for another Node (NODE_MODULE_VERSION 115, this one has 137);",
    ],
    [
      "was built for another system",
      {
        code: "ERR_DLOPEN_FAILED",
        message: "/app/better_sqlite3.node: invalid ELF header",
      },
      "its addon cannot be loaded here, possibly built for another system: /app/better_sqlite3.node: invalid ELF header;",
    ],
    [
      "has no addon for this system",
      {
        code: "MODULE_NOT_FOUND",
        message: "Cannot find module '/app/build/Release/better_sqlite3.node'\nRequire stack:",
      },
      "installed, but its addon was not built;",
    ],
    [
      "fails in a way that nobody knows",
      { message: "out of luck\nand a stack" },
      "better-sqlite3: out of luck;",
    ],
  ])("that %s is to be rebuilt", (_, failure, reason) =>
    withFolder(async (folder) => {
      install(folder, failure);
      const { message } = await refusalIn(folder);
      expect(message).toContain(reason);
      expect(message).toContain(rebuild);
    }),
  );

  test("that wants a newer Node is not even loaded: it would crash the process", () =>
    withFolder(async (folder) => {
      install(folder, { message: "loaded all the same" }, ">=99");
      const { message } = await refusalIn(folder);
      expect(message).toContain(
        `better-sqlite3: version 13.0.3 needs Node 99 or newer, this is ${process.versions.node};`,
      );
      expect(message).toContain("Run `npm install better-sqlite3@12`, or use");
    }));
});

const otherBuild = {
  code: "ERR_DLOPEN_FAILED",
  message:
    "The module '/app/better_sqlite3.node'\nwas compiled against a different Node.js version using\nNODE_MODULE_VERSION 108. This version of Node.js requires\nNODE_MODULE_VERSION 137. Please try re-compiling",
};

describe("a driver that node:sqlite replaces", () => {
  test("was built for another Node: a warning says so once, with the command", () =>
    withFolder(async (folder) => {
      install(folder, otherBuild);
      const warnings: Warning[] = [];
      const loaders = loadersIn(folder, () => loadDriver(driverName));
      loadDriver(undefined, undefined, loaders);
      const load = () => loadDriver(undefined, (warning) => warnings.push(warning), loaders);
      expect(load().name).toBe(driverName);
      load();
      expect(warnings).toEqual([
        {
          code: "DRIVER_UNUSABLE",
          message:
            "The slower node:sqlite is used, because better-sqlite3 is installed and cannot be loaded: " +
            "its addon was built for another Node (NODE_MODULE_VERSION 108, this one has 137). " +
            'Run `npm rebuild better-sqlite3` (with `--ignore-scripts=false` where npm is set to skip install scripts), or set `driver: "node:sqlite"`.',
        },
      ]);
    }));

  test("is not installed: there is nothing to say", () =>
    withFolder(async (folder) => {
      const warnings: Warning[] = [];
      const driver = loadDriver(
        undefined,
        (warning) => warnings.push(warning),
        loadersIn(folder, () => loadDriver(driverName)),
      );
      expect(driver.name).toBe(driverName);
      expect(warnings).toEqual([]);
    }));

  test("was built for this Node and not for the one of the app: it is told once, to onEvent", () =>
    withFolder(async (folder) => {
      const { stderr, said } = onOtherNode(isNode22 ? 24 : 22, folder);
      expect(said).toMatchObject({
        isOwnKept: true,
        emitted: ["The app is an experimental feature"],
        events: [
          {
            message: expect.stringContaining("its addon was built for another Node") as string,
            details: { code: "DRIVER_UNUSABLE" },
          },
        ],
      });
      expect(stderr).toBe("");
    }));
});

test.each([22, 24])(
  "node:sqlite of Node %i, chosen by the app, says nothing: not on its thread, and not to the app's own emitWarning",
  (major) =>
    withFolder(async (folder) => {
      const { stderr, said } = onOtherNode(major, folder, "node:sqlite");
      expect(said).toEqual({
        isOwnKept: true,
        emitted: ["The app is an experimental feature"],
        events: [],
      });
      expect(stderr).toBe("");
    }),
);

const isNode22 = process.versions.node.startsWith("22.");

/** Runs the app of open-on-other-node.ts. */
function onOtherNode(major: number, folder: Folder, ...driver: readonly string[]) {
  const app = compiled("sqlite/open-on-other-node.ts");
  const { stdout, stderr } = spawnSync(nodeOf(major), [app, folder.file(), ...driver], {
    encoding: "utf8",
    env: { ...process.env, NODE_OPTIONS: "" },
  });
  if (stdout === "") throw new Error(stderr);
  return { stderr, said: JSON.parse(stdout) as object };
}
