import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, rmSync, symlinkSync } from "node:fs";
import path from "node:path";
import { build } from "esbuild";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { bundleDoors } from "../../scripts/bundle-doors.ts";
import { nodeWithSqlite } from "../../scripts/node-with-sqlite.ts";
import { Folder } from "./place.ts";

const root = path.join(import.meta.dirname, "../..");
const folder = new Folder();
const formats = ["esm", "cjs"] as const;

/**
 * An app in a project that has the package installed, bundled there, and its
 * bundles taken elsewhere: nothing of the package lies beside them, only what
 * was left outside.
 */
beforeAll(async () => {
  const project = folder.file("project");
  const installed = path.join(project, "node_modules/holdfast");
  await bundleDoors(path.join(installed, "dist"));
  cpSync(path.join(root, "package.json"), path.join(installed, "package.json"));
  link("croner", project);
  cpSync(path.join(import.meta.dirname, "bundled-app.ts"), path.join(project, "app.ts"));
  for (const format of formats)
    await build({
      absWorkingDir: project,
      entryPoints: ["app.ts"],
      outfile: bundleOf(format),
      bundle: true,
      platform: "node",
      format,
      external: ["better-sqlite3", "postgres"],
      logLevel: "warning",
    });
  rmSync(project, { recursive: true });
  link("better-sqlite3", folder.file("deployed"));
});

afterAll(() => folder.dispose());

function bundleOf(format: (typeof formats)[number]): string {
  return folder.file(`deployed/app.${format === "esm" ? "mjs" : "cjs"}`);
}

function link(other: string, home: string): void {
  const place = path.join(home, "node_modules", other);
  mkdirSync(path.dirname(place), { recursive: true });
  symlinkSync(path.join(root, "node_modules", other), place, "junction");
}

const nodes = [
  ["this Node", () => process.execPath],
  ["a Node with node:sqlite", nodeWithSqlite],
] as const;

const ways = formats.flatMap((format) =>
  nodes.map(([name, binary]) => [format, name, binary] as const),
);

describe("an app that was bundled", () => {
  test.each(ways)(
    "as %s runs on a file with %s, once and again, with every thread and process",
    async (format, name, binary) => {
      const file = folder.file(`${format}-${name.length}.db`);
      const first = runApp(file, `${file}.first`);
      expect(first).toMatchObject({ found: 0, ...sound });
      // Node may be told to take texts for modules, but not beside a main file that is one.
      const options = format === "cjs" ? "--input-type=module" : "";
      const second = runApp(file, `${file}.second`, options);
      expect(second).toMatchObject({ found: first["written"], ...sound });
      const copied = folder.shell(
        ["SELECT count(*) AS notes FROM note"],
        path.basename(`${file}.second`),
      );
      expect(copied).toEqual([{ notes: second["written"] }]);

      function runApp(database: string, copy: string, nodeOptions = ""): Record<string, unknown> {
        const output = execFileSync(binary(), [bundleOf(format), database, copy], {
          cwd: folder.path,
          encoding: "utf8",
          // The better-sqlite3 here is built for this Node, which Holdfast says on another.
          stdio: "pipe",
          env: { ...process.env, NODE_OPTIONS: nodeOptions },
        });
        return JSON.parse(output) as Record<string, unknown>;
      }
    },
  );
});

const sound = { problems: [], failures: 0, isBackedUp: true };
