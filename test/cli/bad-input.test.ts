import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { projectRoot } from "../../scripts/project.ts";
import { holdfastCli } from "./host.ts";

const folder = mkdtempSync(path.join(tmpdir(), "holdfast-bad-input-"));

beforeAll(() => {
  const files = {
    "empty.mjs": "export const answer = 42;\n",
    "nothing.mjs": "",
    "broken.mjs": "export const a = (;\n",
    "throwing.mjs": 'throw new Error("not today");\n',
    "telling.mjs": 'throw new Error("not \\u001b[2J postgres://u:hidden@h today");\n',
    "flow.mjs": `import { workflow } from "${pathToFileURL(path.join(projectRoot, "src/index.ts")).href}";\nexport const flow = workflow("flow", async () => 1);\n`,
    "app.mjs": "export const x = {};\n",
    "no-database.db": "this is no database, but long enough to be read as one\n",
    real: "SQLite format 3\0 and so on",
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(path.join(folder, name), text);
  mkdirSync(path.join(folder, "folder.mjs"));
});

afterAll(() => rmSync(folder, { recursive: true }));

/** Command lines that make no sense, each with its exit code and what is said of it. */
const refused: readonly (readonly [readonly string[], number, RegExp])[] = [
  [["dev"], 2, /missing required argument 'file'/i],
  [["dev", "missing.mjs"], 2, /MODULE_NOT_LOADED: "missing.mjs" .* the file does not exist/],
  [["dev", "folder.mjs"], 2, /MODULE_NOT_LOADED.*is a folder\. Name a file/],
  [["dev", "app.mjs", "--db", ":memory:"], 2, /in memory ends with the process/],
  [["dev", "app.mjs", "--db", "no-database.db"], 5, /NOT_A_DATABASE/],
  [["dev", "app.mjs", "more.mjs"], 2, /too many arguments/i],
  [["work", "missing.mjs"], 2, /MODULE_NOT_LOADED/],
  [["work", "folder.mjs"], 2, /MODULE_NOT_LOADED.*is a folder\. Name a file/],
  [["work", "real"], 2, /MODULE_NOT_LOADED.*is a database.*--db real and a module/],
  [["dev", "real"], 2, /MODULE_NOT_LOADED.*is a database/],
  [["start", "real", "greet"], 2, /MODULE_NOT_LOADED.*is a database/],
  [["work", "no-database.db"], 2, /MODULE_NOT_LOADED.*is a database/],
  [["list", "--db", "folder.mjs"], 2, /DATABASE_PATH_INVALID.*is a folder/],
  [["work", "a\0b.mjs"], 2, /MODULE_NOT_LOADED/],
  [
    ["work", "empty.mjs"],
    2,
    /MODULE_WITHOUT_FUNCTIONS.*\(but answer\).*Write export before the const.*export const greet/,
  ],
  [["work", "nothing.mjs"], 2, /MODULE_WITHOUT_FUNCTIONS/],
  [["work", "broken.mjs"], 2, /MODULE_NOT_LOADED/],
  [["work", "throwing.mjs"], 2, /MODULE_NOT_LOADED.*not today/],
  [["work", "empty.mjs", "--concurrency", "many"], 2, /whole number/],
  [["work", "empty.mjs", "--lease", "soon"], 2, /It must be a duration/],
  [["wrok", "empty.mjs"], 2, /unknown command 'wrok'.*did you mean work/i],
  [["help", "wrok"], 2, /unknown command 'wrok'.*did you mean work/i],
  [["help", "nonsense"], 2, /unknown command 'nonsense'\. Run it with --help/i],
  [
    ["schedules", "puase", "nightly"],
    2,
    /unknown command 'schedules puase'.*list, pause, resume, remove, fire/i,
  ],
  [["schedules", "--frobnicate"], 2, /unknown option '--frobnicate'/i],
  [["start"], 2, /missing required argument/i],
  [["start", "missing.mjs"], 2, /MODULE_NOT_LOADED/],
  [["start", "empty.mjs", "greet"], 2, /MODULE_WITHOUT_FUNCTIONS/],
  [["start", "greet", "other"], 2, /"greet" is not a module/],
  [["start", "greet", "--input", "{oops"], 2, /--input must be JSON/],
  [["start", "greet", "--input", "-"], 2, /standard input, .*, but the input is empty/],
  [["start", "greet", "--input", '"x"', "--db", "absent.db"], 3, /DATABASE_NOT_FOUND/],
  [["start", "greet", "--timeout", "-1s"], 2, /It must be a duration/],
  [["start", "greet", "--timeout", "1s"], 2, /--timeout needs --wait/],
  [
    ["init", "no-database.db"],
    4,
    /FILE_NOT_WRITTEN.*another folder|FILE_NOT_WRITTEN.*a writable folder/,
  ],
  [["init", "a\0b"], 4, /FILE_NOT_WRITTEN/],
  ...(process.platform === "linux"
    ? ([
        [["init", "/proc/x/y"], 4, /FILE_NOT_WRITTEN.*ENOENT.*a writable folder/],
        [["start", "flow.mjs", "--db", "/proc/x/app.db"], 5, /DATABASE_NOT_WRITABLE.*ENOENT/],
      ] as const)
    : []),
  [["init", "."], 4, /FILE_NOT_WRITTEN: app.mjs already exists in /],
  [["demo", "--orders", "1"], 2, /--orders must be from 2 to 100; got 1/],
  [["demo", "--orders", "1e9"], 2, /whole number/],
  [["demo", "--pace", "2h"], 2, /--pace must be from/],
  [["demo", "--pace", "fast"], 2, /It must be a duration/],
];

test.each([
  ["postgres://u:hidden@h/db"],
  ["list", "--limit", "postgres://u:hid/den@h/db"],
  ["work", "postgres://h/db?password=hidden"],
  ["work", "telling.mjs"],
])(
  "a password in a wrong place is not said again, nor is what moves a cursor: %j %s",
  async (...args) => {
    for (const how of [[], ["--debug"], ["--debug", "--json"]]) {
      const { stderr } = await holdfastCli([...args, ...how], { cwd: folder });
      expect(stderr).not.toContain("hid");
      expect(stderr).not.toContain("\u001B");
      expect(stderr).toContain("…");
    }
  },
);

describe("a command line that makes no sense", () => {
  test.each(refused)(
    "%j ends with %i, says what to do, and writes nothing",
    async (args, code, said) => {
      const before = readdirSync(folder);
      const ran = await holdfastCli(args, { cwd: folder });
      expect(ran.stderr).toMatch(said);
      expect([ran.code, ran.stdout]).toEqual([code, ""]);
      const asJson = await holdfastCli([...args, "--json"], { cwd: folder });
      expect(JSON.parse(asJson.stderr)).toMatchObject({
        error: { code: expect.any(String), message: expect.any(String) },
      });
      expect(readdirSync(folder)).toEqual(before);
    },
  );
});
