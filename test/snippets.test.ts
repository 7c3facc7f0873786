import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { openHoldfast, workflow } from "../src/index.ts";
import { blocks, typeScript } from "./docs-pages.ts";
import { withFolder } from "./sqlite/place.ts";

const root = path.join(import.meta.dirname, "..");

function inFolder(body: (place: string) => void): void {
  const place = mkdtempSync(path.join(tmpdir(), "holdfast-docs-"));
  try {
    body(place);
  } finally {
    rmSync(place, { recursive: true });
  }
}

const isTest = (code: string): boolean => code.includes('from "node:test"');

function runWithTsx(place: string, args: readonly string[]) {
  return spawnSync(process.execPath, ["--import", import.meta.resolve("tsx"), ...args], {
    cwd: place,
    encoding: "utf8",
    env: {
      ...process.env,
      TSX_TSCONFIG_PATH: path.join(root, "tsconfig.json"),
      // What a page reads from the environment has its default.
      DATABASE_URL: undefined,
    },
  });
}

describe("code of the documents", () => {
  test("compiles as an app's would", () =>
    inFolder((place) => {
      for (const { name, code } of typeScript) writeFileSync(path.join(place, `${name}.ts`), code);
      const config = {
        extends: path.join(root, "tsconfig.json"),
        compilerOptions: {
          paths: {
            holdfast: [path.join(root, "src/index.ts")],
            "holdfast/*": [path.join(root, "src/*.ts")],
          },
          typeRoots: [path.join(root, "node_modules/@types")],
        },
        include: [`${place}/*.ts`],
      };
      writeFileSync(path.join(place, "tsconfig.json"), JSON.stringify(config));
      writeFileSync(path.join(place, "package.json"), '{ "type": "module" }');
      const compiler = path.join(root, "node_modules/typescript/bin/tsc");
      const { stdout } = spawnSync(process.execPath, [compiler, "-p", place], {
        encoding: "utf8",
      });
      expect(stdout).toBe("");
    }));

  test("that is a test passes", () =>
    inFolder((place) => {
      const tests = typeScript.filter(({ code }) => isTest(code));
      for (const { name, code } of tests) writeFileSync(path.join(place, `${name}.test.mts`), code);
      const files = tests.map(({ name }) => `${name}.test.mts`);
      const { stdout } = runWithTsx(place, ["--test", ...files]);
      expect(stdout).toMatch(/^(#|ℹ) pass 1$/m);
      expect(stdout).toMatch(/^(#|ℹ) fail 0$/m);
    }));

  test("that opens and closes a database runs to its end, without a word on its errors", () =>
    inFolder((place) => {
      const runnable = typeScript.filter(
        ({ code }) =>
          /await (open(Holdfast|Sqlite)|testHoldfast)\(/.test(code) &&
          code.includes(".close()") &&
          !isTest(code),
      );
      for (const { name, code } of runnable) writeFileSync(path.join(place, `${name}.mts`), code);
      // One after the other, in one process: starting one takes longer than most of them.
      const all = runnable.map(({ name }) => `await import("./${name}.mts");\n`).join("");
      writeFileSync(path.join(place, "all.mts"), `${all}console.log("done");\n`);
      const { stdout, stderr } = runWithTsx(place, ["all.mts"]);
      expect(stderr).toBe("");
      expect(stdout).toContain("Hello, Ada!");
      expect(stdout).toContain("Do not forget, Ada!");
      expect(stdout).toContain("blocked 2026-01-02T00:00:00.000Z\nnot paid\n");
      expect(stdout).toContain("{ receipt: '500 at attempt 3' }\n3\n");
      expect(stdout.trim().split("\n").at(-1)).toBe("done");
    }));

  test("that is SQL finds a run in its tables", () =>
    withFolder(async (folder) => {
      const holdfast = await openHoldfast(folder.file());
      const fulfil = workflow("fulfil", async (ctx) => {
        await ctx.step("label", () => 1);
        await ctx.sleep("5ms");
      });
      await holdfast.work([fulfil]);
      const run = await holdfast.start(fulfil, undefined, { id: "order-42" });
      await run.result();
      await holdfast.close();
      const statements = blocks
        .filter(({ language }) => language === "sql")
        .flatMap(({ code }) => code.replaceAll(/^--.*\n/gm, "").split(";\n"))
        .map((statement) => statement.trim())
        .filter((statement) => statement !== "");
      expect(statements.length).toBeGreaterThan(4);
      // What cannot go on by itself is the one thing that is not there.
      for (const statement of statements)
        expect([statement, folder.shell([statement]).length > 0]).toEqual([
          statement,
          !statement.includes("lifecycle <> 'active'"),
        ]);
    }));
});
