import { cpSync, mkdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { loadBetterSqlite3, loadDriver } from "../../src/backends/sqlite/drivers/drivers.ts";
import { rejection } from "../conformance/backend.ts";
import { withFolder } from "./place.ts";
import type { Folder } from "./place.ts";

/** Refuses as an app in this folder would be refused, on a Node without node:sqlite. */
const refusalIn = (folder: Folder) =>
  rejection(
    (async () =>
      loadDriver(undefined, {
        "better-sqlite3": () => loadBetterSqlite3(createRequire(folder.file("app.js"))),
        "node:sqlite": () => {
          throw new Error("No such built-in module: node:sqlite");
        },
      }))(),
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
          "Run `npm install better-sqlite3`, or use Node 22.13 or newer, which has node:sqlite built in.",
      });
    }));

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
