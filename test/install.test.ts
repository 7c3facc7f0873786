import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { nodeOf } from "../scripts/node-of.ts";
import { npm, packed, packedFrom } from "../scripts/pack.ts";
import { projectRoot } from "../scripts/project.ts";

/** A newcomer's empty folder, into which npm installs the packed package. */
const home = mkdtempSync(path.join(tmpdir(), "holdfast-install-"));
const modules = path.join(home, "node_modules");
const dependencies = ["commander", "croner"];

beforeAll(() => {
  const work = mkdtempSync(path.join(tmpdir(), "holdfast-packed-"));
  try {
    const tarballs = dependencies.map((name) =>
      packedFrom(path.join(projectRoot, "node_modules", name), work),
    );
    writeFileSync(path.join(home, "package.json"), JSON.stringify({ private: true }));
    // With the tarballs of its dependencies there is nothing to fetch: whatever else npm wanted would fail.
    npm(["install", "--offline", "--no-audit", "--no-fund", packed(work), ...tarballs], home);
  } finally {
    rmSync(work, { recursive: true });
  }
});

afterAll(() => rmSync(home, { recursive: true }));

function run(major: number, program: string, file: string) {
  writeFileSync(path.join(home, file), program);
  const { status, stdout, stderr } = spawnSync(nodeOf(major), [file], {
    cwd: home,
    encoding: "utf8",
    env: { ...process.env, NODE_OPTIONS: "" },
  });
  return { status, stdout, stderr };
}

const [, readmeProgram = ""] =
  /^```ts\n([^]*?)^```$/m.exec(readFileSync(path.join(projectRoot, "README.md"), "utf8")) ?? [];

const program = `
  import { openHoldfast, workflow } from "holdfast";
  const greet = workflow("greet", (ctx, name) => ctx.step("greet", () => "Hello, " + name));
  const holdfast = await openHoldfast("./greet.db");
  await holdfast.work([greet]);
  console.log(await (await holdfast.start(greet, "Ada")).result());
  await holdfast.close();`;

describe("the packed package, installed by npm into an empty folder", () => {
  test("brings two packages without install scripts, so that nothing is compiled", () => {
    const { packages } = JSON.parse(
      readFileSync(path.join(modules, ".package-lock.json"), "utf8"),
    ) as { packages: Record<string, { readonly hasInstallScript?: boolean }> };
    expect(Object.keys(packages).toSorted()).toEqual([
      "node_modules/commander",
      "node_modules/croner",
      "node_modules/holdfast",
    ]);
    for (const { hasInstallScript } of Object.values(packages))
      expect(hasInstallScript).toBeUndefined();
  });

  test("has no sources but the migrations, no source maps, and no pages for insiders", () => {
    const files = readdirSync(path.join(modules, "holdfast"), {
      recursive: true,
      encoding: "utf8",
      withFileTypes: true,
    })
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) =>
        path.relative(path.join(modules, "holdfast"), path.join(parentPath, name)),
      );
    expect(files).toContain("docs/errors.md");
    expect(files).toContain("src/sql/migrations/0001_kernel/sqlite.sql");
    const unwanted = /^src\/.*(?<!\.sql)$|\.map$|^docs\/(adr|benchmarks|conformance)|^bench|^test/;
    expect(files.filter((file) => unwanted.test(file))).toEqual([]);
  });

  test("runs README's program on Node 24 with node:sqlite, and says nothing else", () => {
    expect(run(24, readmeProgram, "orders.mts")).toEqual({
      status: 0,
      stdout:
        "charging 500 cents, attempt 1\n" +
        "{ receipt: 'receipt-500', label: 'label of order-42', approved: true }\n",
      stderr: "",
    });
  });

  test("runs on Node 22 without its remark on SQLite", () => {
    expect(run(22, program, "greet.mjs")).toEqual({
      status: 0,
      stdout: "Hello, Ada\n",
      stderr: "",
    });
  });

  test("says on Node 20 which command to run", () => {
    const { status, stdout, stderr } = run(20, program, "greet.mjs");
    expect({ status, stdout }).toEqual({ status: 1, stdout: "" });
    expect(stderr).toContain("DRIVER_MISSING");
    expect(stderr).toContain(
      "Run `npm install better-sqlite3@12`, or use Node 22.13 or newer, which has node:sqlite built in.",
    );
  });
});
