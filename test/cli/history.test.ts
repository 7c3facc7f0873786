import { readFileSync, statSync, writeFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { workflow, type RunHistory } from "../../src/index.ts";
import { holdfastOn } from "../../src/open/open-holdfast.ts";
import { withFolder, type Folder } from "../sqlite/place.ts";
import { holdfastCli, type Ran } from "./host.ts";

const greet = workflow("greet", async (ctx, name: string) =>
  ctx.step("compose", () => `Hello, ${name}!`),
);

/** A module of the user's, which makes its workflow of this installation. */
const moduleOf = (step: string): string => `
  import { workflow } from ${JSON.stringify(new URL("../../src/index.ts", import.meta.url).href)};
  export const all = [workflow("greet", async (ctx, name) => ctx.step("${step}", () => name))];
  export const other = workflow("other", async () => 1);
  export default 7;
`;

interface Fixture {
  readonly folder: Folder;
  readonly cli: (...args: readonly string[]) => Promise<Ran>;
}

/** A database with one run that has ended, and two modules. */
function withRun(body: (fixture: Fixture) => Promise<void>): Promise<void> {
  return withFolder(async (folder: Folder) => {
    const holdfast = await holdfastOn(await folder.open({}, {}, "app.db"));
    await holdfast.work([greet]);
    await (await holdfast.start(greet, "Ada", { id: "greet-ada" })).result();
    await holdfast.close();
    writeFileSync(folder.file("same.mjs"), moduleOf("compose"));
    writeFileSync(folder.file("changed.mjs"), moduleOf("translate"));
    const cwd = folder.file(".");
    const db = ["--db", folder.file("app.db")];
    await body({
      folder,
      cli: (...args) => holdfastCli([...args, ...db], { cwd }),
    });
  });
}

describe("holdfast export", () => {
  test("prints a history, or writes it where nobody else reads it", () =>
    withRun(async ({ cli, folder }) => {
      const printed = await cli("export", "greet-ada");
      expect(printed.code).toBe(0);
      expect(printed.json()).toMatchObject({
        format: "holdfast-history",
        run: "greet-ada",
        function: "greet",
        input: "Ada",
      });
      const written = await cli("export", "greet-ada", "--output", "ada.json");
      expect(written).toMatchObject({ code: 0, stdout: "" });
      expect(written.stderr).toContain("Wrote the history of greet-ada");
      const text = readFileSync(folder.file("ada.json"), "utf8");
      expect(JSON.parse(text)).toEqual(printed.json());
      expect(statSync(folder.file("ada.json")).mode & 0o777).toBe(0o600);
      const line = await cli("export", "greet-ada", "--json");
      expect(line.stdout.trim().split("\n")).toHaveLength(1);
      const told = await cli("export", "greet-ada", "--output", "line.json", "--json");
      expect(told.json()).toEqual({ id: "greet-ada", file: "line.json" });
    }));

  test("replaces no file unless it is told to", () =>
    withRun(async ({ cli, folder }) => {
      const mine = folder.file("mine.json");
      writeFileSync(mine, "mine");
      const args = ["export", "greet-ada", "--output", "mine.json"];
      const refused = await cli(...args);
      expect(refused).toMatchObject({
        code: 4,
        stdout: "",
        stderr: `TARGET_EXISTS: "mine.json" already exists and was not changed. Name another file, or replace it with --force.\n`,
      });
      expect(readFileSync(mine, "utf8")).toBe("mine");
      expect(await cli(...args, "--force")).toMatchObject({ code: 0 });
      expect(JSON.parse(readFileSync(mine, "utf8"))).toMatchObject({
        run: "greet-ada",
      });
      // Whoever could read the old file cannot read the values in the new one.
      expect(statSync(mine).mode & 0o777).toBe(0o600);
      const odd = await cli("export", "greet-ada", "--force");
      expect(odd).toMatchObject({ code: 2, stdout: "" });
      expect(odd.stderr).toContain("--force needs --output");
    }));

  test("says what is wrong, and how to go on", () =>
    withRun(async ({ cli }) => {
      expect(await cli("export", "nobody")).toMatchObject({
        code: 3,
        stdout: "",
      });
      expect(await cli("export", "a b")).toMatchObject({ code: 2 });
      expect(await cli("export")).toMatchObject({ code: 2 });
      const lost = await cli("export", "greet-ada", "--output", "no/where.json");
      expect(lost).toMatchObject({ code: 2, stdout: "" });
      expect(lost.stderr).toContain('"no/where.json" cannot be written');
    }));
});

describe("holdfast replay", () => {
  test("says that code is safe, by a file or by the run itself", () =>
    withRun(async ({ cli }) => {
      await cli("export", "greet-ada", "--output", "ada.json");
      const safe = await cli("replay", "same.mjs", "ada.json");
      expect(safe).toMatchObject({ code: 0, stderr: "" });
      expect(safe.stdout).toBe(
        "The code of greet matches all recorded calls of run greet-ada, and ends: completed.\n",
      );
      const live = await cli("replay", "same.mjs", "--run", "greet-ada", "--json");
      expect(live.json()).toMatchObject({ run: "greet-ada", kind: "ends" });
    }));

  test("shows what changed code does instead, with an exit code of its own", () =>
    withRun(async ({ cli }) => {
      await cli("export", "greet-ada", "--output", "ada.json");
      const differs = await cli("replay", "changed.mjs", "ada.json");
      expect(differs.code).toBe(6);
      expect(differs.stdout).toContain('recorded: step "compose"');
      expect(differs.stdout).toContain('actual:   step "translate"');
      const asJson = await cli("replay", "changed.mjs", "ada.json", "--json");
      expect(asJson.code).toBe(6);
      expect(asJson.json()).toMatchObject({
        kind: "differs",
        error: { code: "NONDETERMINISM", details: { call: 1 } },
      });
    }));

  test("refuses what it cannot replay", () =>
    withRun(async ({ cli, folder }) => {
      await cli("export", "greet-ada", "--output", "ada.json");
      const text = readFileSync(folder.file("ada.json"), "utf8");
      const history = JSON.parse(text) as RunHistory;
      const write = (name: string, value: unknown): void =>
        writeFileSync(folder.file(name), JSON.stringify(value));
      write("newer.json", { ...history, formatVersion: 9 });
      write("unknown.json", { ...history, function: "unknown" });
      write("number.json", 7);
      writeFileSync(folder.file("text.json"), "no JSON");
      writeFileSync(folder.file("empty.mjs"), "export const x = 1;");
      const said = async (...args: readonly string[]): Promise<string> => {
        const { code, stdout, stderr } = await cli("replay", ...args);
        expect([code, stdout]).toEqual([2, ""]);
        return stderr;
      };
      expect(await said("same.mjs", "newer.json")).toContain("HISTORY_INVALID");
      expect(await said("same.mjs", "text.json")).toContain("is not JSON");
      expect(await said("same.mjs", "number.json")).toContain("got a number");
      expect(await said("same.mjs", "unknown.json")).toContain(
        'exports no workflow "unknown", to which the history belongs. It exports "greet", "other".',
      );
      expect(await said("empty.mjs", "ada.json")).toContain("MODULE_WITHOUT_FUNCTIONS");
      expect(await said("same.mjs", "lost.json")).toContain("cannot be read");
      expect(await said("lost.mjs", "ada.json")).toContain("MODULE_NOT_LOADED");
      expect(await said("same.mjs")).toContain("--run <id>");
      expect(await said("same.mjs", "ada.json", "--run", "greet-ada")).toContain("Pass either");
      expect(await cli("replay", "same.mjs", "--run", "nobody")).toMatchObject({
        code: 3,
      });
    }));
});
