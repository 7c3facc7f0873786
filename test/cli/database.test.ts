import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { holdfastOn } from "../../src/open/open-holdfast.ts";
import { withFolder, type Folder } from "../sqlite/place.ts";
import { holdfastCli } from "./host.ts";

/** A file of an app, with a run in it that nobody runs. */
async function withRun(folder: Folder, id: string, name = "app.db") {
  const holdfast = await holdfastOn(await folder.open({}, {}, name));
  await holdfast.executions.create({ id, function: "orders/fulfil", input: 1 });
  await holdfast.close();
}

async function listed(
  args: readonly string[],
  options: Parameters<typeof holdfastCli>[1],
): Promise<readonly string[]> {
  const { json, stderr } = await holdfastCli(["list", "--json", ...args], options);
  expect(stderr).toBe("");
  return (json() as { items: { id: string }[] }).items.map(({ id }) => id);
}

describe("the database of a command", () => {
  test("is that of --db, else of HOLDFAST_DB, else of the nearest config file upwards", () =>
    withFolder(async (folder) => {
      await withRun(folder, "by-option", "option.db");
      await withRun(folder, "by-variable", "variable.db");
      await withRun(folder, "by-config", "config.db");
      writeFileSync(folder.file("holdfast.config.mjs"), 'export default { db: "./config.db" };');
      mkdirSync(folder.file("deep/er"), { recursive: true });
      const cwd = folder.file("deep/er");
      expect(await listed([], { cwd })).toEqual(["by-config"]);
      const env = { HOLDFAST_DB: "../../variable.db" };
      expect(await listed([], { cwd, env })).toEqual(["by-variable"]);
      expect(await listed(["--db", "../../option.db"], { cwd, env })).toEqual(["by-option"]);
    }));

  test("may be named in TypeScript, and by a named export", () =>
    withFolder(async (folder) => {
      await withRun(folder, "named");
      writeFileSync(folder.file("other.ts"), 'export const db: string = "app.db";');
      expect(await listed(["--config", "other.ts"], { cwd: folder.path })).toEqual(["named"]);
    }));

  test.each([
    ["nothing names one", [], 2, "OPTION_INVALID: No database was named. Name one"],
    ["it is empty", ["--db", ""], 2, "OPTION_INVALID: --db is empty"],
    ["it is in memory", ["--db", ":memory:"], 2, "ends with the process"],
    ["it is a URL of something else", ["--db", "mysql://u:p@h/x"], 2, "(mysql:…)"],
    ["it is not there", ["--db", "no/such.db"], 3, "DATABASE_NOT_FOUND: "],
    ["its name ends with white space", ["--db", "x.db\n"], 2, "white space"],
    ["it begins with white space", ["--db", " x.db"], 2, "white space"],
    ["it is a folder", ["--db", "."], 2, "DATABASE_PATH_INVALID: "],
    ["it is no database", ["--db", "text.db"], 5, "NOT_A_DATABASE: "],
    [
      "it has no tables of ours",
      ["--db", "empty.db"],
      5,
      "SCHEMA_OUTDATED: The database has no holdfast tables",
    ],
    ["nobody listens", ["--db", "postgres://u:secret@127.0.0.1:1/x"], 5, "DATABASE_UNREACHABLE: "],
    ["the config is not there", ["--config", "x.mjs"], 2, 'MODULE_NOT_LOADED: "'],
    [
      "the config throws",
      ["--config", "throws.mjs"],
      2,
      "failed while loading: TypeError: no luck",
    ],
    ["the config is none", ["--config", "number.mjs"], 2, "CONFIG_INVALID: "],
    [
      "the config has a wrong db",
      ["--config", "wrong.mjs"],
      2,
      "db must be a path or a postgres:// URL",
    ],
    ["the config has no db", ["--config", "none.mjs"], 2, "exports no db"],
  ] as const)("is refused when %s, in one line and without a trace", (_, args, code, said) =>
    withFolder(async (folder) => {
      writeFileSync(folder.file("text.db"), "This is no database. ".repeat(99));
      writeFileSync(folder.file("empty.db"), "");
      writeFileSync(folder.file("throws.mjs"), 'throw new TypeError("no luck");');
      writeFileSync(folder.file("number.mjs"), "export default 7;");
      writeFileSync(folder.file("wrong.mjs"), "export const db = 7;");
      writeFileSync(folder.file("none.mjs"), "export const functions = [];");
      const before = readdirSync(folder.path);
      for (const command of [["list"], ["stats"]]) {
        const ran = await holdfastCli([...command, ...args], {
          cwd: folder.path,
        });
        expect(ran).toMatchObject({ code, stdout: "" });
        expect(ran.stderr).toContain(said);
        expect(ran.stderr.trimEnd().split("\n")).toHaveLength(1);
        expect(ran.stderr).not.toContain("secret");
      }
      expect(readdirSync(folder.path)).toEqual(before);
    }),
  );

  test("that a newer version made is refused with what to do", () =>
    withFolder(async (folder) => {
      await withRun(folder, "newer");
      folder.shell([
        "INSERT INTO holdfast_migration SELECT 999, 'later', checksum, schema_hash, applied_at FROM holdfast_migration LIMIT 1",
      ]);
      const ran = await holdfastCli(["list", "--db", folder.file()]);
      expect(ran.code).toBe(5);
      expect(ran.stderr).toMatch(/^SCHEMA_NEWER: .*upgrade holdfast/);
    }));

  test("is left alone by what only looks, also while a worker has it open", () =>
    withFolder(async (folder) => {
      const holdfast = await holdfastOn(await folder.open());
      await holdfast.executions.create({ id: "a", function: "f" });
      const { code } = await holdfastCli(["list", "--db", folder.file()]);
      expect(code).toBe(0);
      expect(existsSync(folder.file("app.db-journal"))).toBe(false);
      await holdfast.close();
    }));
});

describe("what a command says", () => {
  test("of an unknown command or option is the nearest one, with exit code 2", async () => {
    const command = await holdfastCli(["lits"]);
    expect(command).toMatchObject({ code: 2, stdout: "" });
    expect(command.stderr).toContain("(Did you mean list?)");
    const help = await holdfastCli(["help", "lits"]);
    expect(help).toMatchObject({ code: 2, stdout: "" });
    expect(help.stderr).toContain("(Did you mean list?)");
    const none = await holdfastCli(["--json"]);
    expect(none).toMatchObject({ code: 2, stdout: "" });
    expect(none.stderr).toContain("No command was named");
    const option = await holdfastCli(["list", "--statsu", "failed"]);
    expect(option.code).toBe(2);
    expect(option.stderr).toContain("(Did you mean --status?)");
  });

  test.each([
    [["list", "surplus"], "Too many arguments"],
    [["list", "--status", "gone"], "Allowed choices are pending,"],
    [["list", "--limit", "many"], "whole number"],
    [["list", "--since", "recently"], "a duration before now"],
    [["list", "--db"], "argument missing"],
  ])("of %j is why it makes no sense", async (args, said) => {
    const { code, stderr } = await holdfastCli(args);
    expect(code).toBe(2);
    expect(stderr).toMatch(/^OPTION_INVALID: /);
    expect(stderr).toContain(said);
  });

  test("of a failure is one JSON document under --json, and a stack under --debug", async () => {
    const args = ["list", "--db", "/no/such.db"];
    const plain = await holdfastCli([...args, "--json"]);
    expect(plain.stdout).toBe("");
    expect(JSON.parse(plain.stderr)).toMatchObject({
      error: { code: "DATABASE_NOT_FOUND", details: { path: "/no/such.db" } },
    });
    const debug = await holdfastCli([...args, "--debug"]);
    expect(debug.stderr).toMatch(/\n\s+at /);
    const usage = await holdfastCli(["lits", "--json"]);
    expect(JSON.parse(usage.stderr)).toMatchObject({
      error: { code: "OPTION_INVALID" },
    });
  });

  test("without arguments is its help, and its version when asked", async () => {
    const help = await holdfastCli([]);
    expect(help).toMatchObject({ code: 0, stderr: "" });
    expect(help.stdout).toMatch(/^Usage: holdfast \[options\] \[command\]/);
    expect((await holdfastCli(["--version"])).stdout).toMatch(/^\d+\.\d+\.\d+/);
  });
});
