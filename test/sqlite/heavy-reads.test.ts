import {
  closeSync,
  copyFileSync,
  existsSync,
  openSync,
  readFileSync,
  renameSync,
  unlinkSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { describe, expect, test } from "vitest";
import type { Progress } from "../../src/backends/sqlite/heavy/heavy-call.ts";
import { rejection } from "../conformance/backend.ts";
import { addNote, noteCount } from "../conformance/notes.ts";
import type { HeavyReads } from "../../src/backends/sqlite/heavy/heavy-reads.ts";
import { collected, fill, heavyReads, withHeavyReads } from "./heavy.ts";
import { withFolder } from "./place.ts";
import type { Folder } from "./place.ts";

/** Overwrites the head of a table's first page in a closed copy of the file. */
function damagedCopy(folder: Folder, table: string): string {
  const [found] = folder.shell([
    `SELECT rootpage, (SELECT page_size FROM pragma_page_size) AS size FROM sqlite_schema WHERE name = '${table}'`,
  ]) as { rootpage: number; size: number }[];
  const copy = folder.file("damaged.db");
  copyFileSync(folder.file(), copy);
  const fd = openSync(copy, "r+");
  const at = ((found?.rootpage ?? 0) - 1) * (found?.size ?? 0);
  writeSync(fd, Buffer.alloc(64, 0xff), 0, 64, at);
  closeSync(fd);
  return copy;
}

/** Changes text of a closed file where it stands last, past what SQLite allows. */
function replaceLast(path: string, text: string, by: string): void {
  const content = readFileSync(path);
  content.write(by, content.lastIndexOf(text));
  writeFileSync(path, content);
}

describe("a quick check", () => {
  test("finds nothing wrong, and names and skips the app's tables", () =>
    withHeavyReads(async ({ heavy }) => {
      const report = await heavy.check();
      expect(report).toMatchObject({
        ok: true,
        problems: [],
        skipped: ["app_note"],
      });
      expect(report.tables).toBeGreaterThan(1);
    }));

  test("reports its progress table by table, up to the number of tables", () =>
    withHeavyReads(async ({ heavy }) => {
      const seen: Progress[] = [];
      const onProgress = (progress: Progress): number => seen.push(progress);
      const { tables } = await heavy.check({ onProgress });
      expect(seen.map(({ done }) => done)).toEqual(
        Array.from({ length: tables + 1 }, (_, done) => done),
      );
      expect(seen.every(({ total }) => total === tables)).toBe(true);
    }));

  test("finds a damaged page of ours", () =>
    withHeavyReads(async ({ folder, database }) => {
      await database.close();
      const copy = damagedCopy(folder, "holdfast_tick");
      const other = heavyReads(copy);
      const { ok, problems } = await other.check();
      await other.close();
      expect(ok).toBe(false);
      expect(problems.join()).toContain("holdfast_tick");
    }));

  test("stops when its signal aborts, and the next call works", () =>
    withHeavyReads(async ({ heavy }) => {
      const abort = new AbortController();
      const stopped = rejection(
        heavy.check({ signal: abort.signal, onProgress: () => abort.abort() }),
      );
      expect(await stopped).toMatchObject({ code: "ABORTED" });
      expect(await heavy.check()).toMatchObject({ ok: true });
    }));

  test("ends with a code when the listener of its progress throws, and refuses one that is no function", () =>
    withHeavyReads(async ({ heavy, folder }) => {
      const calls = [
        (onProgress: never) => heavy.check({ onProgress }),
        (onProgress: never) => heavy.check({ full: true, onProgress }),
        (onProgress: never) => heavy.sizes({ onProgress }),
        (onProgress: never) => heavy.backup(folder.file("copy.db"), { onProgress }),
      ];
      const thrown = new Error("enough");
      const throws = (): never => {
        throw thrown;
      };
      for (const call of calls)
        expect(await rejection(call(throws as never))).toMatchObject({
          code: "OPTION_INVALID",
          details: { option: "onProgress", report: { done: expect.any(Number) } },
          cause: thrown,
        });
      for (const call of calls)
        expect(await rejection(call(5 as never))).toMatchObject({
          code: "OPTION_INVALID",
          message: "Expected onProgress to be a function; got a number.",
        });
      expect(existsSync(folder.file("copy.db"))).toBe(false);
    }));
});

describe("a full check", () => {
  test("covers the app's tables too and ends its progress at the total", () =>
    withHeavyReads(async ({ heavy, database }) => {
      await database.write(addNote, { id: "a" });
      const seen: Progress[] = [];
      const report = await heavy.check({
        full: true,
        onProgress: (progress) => seen.push(progress),
      });
      expect(report).toMatchObject({ ok: true, problems: [], skipped: [] });
      const last = seen.at(-1);
      expect(last?.done).toBe(last?.total);
    }));

  test("finds a damaged page of the app's", () =>
    withHeavyReads(async ({ folder, database }) => {
      await database.write(addNote, { id: "a" });
      await database.close();
      const other = heavyReads(damagedCopy(folder, "app_note"));
      expect((await other.check()).ok).toBe(true);
      const { ok, problems } = await other.check({ full: true });
      await other.close();
      expect(ok).toBe(false);
      expect(problems.length).toBeGreaterThan(0);
    }));

  test("finds an index that disagrees with its table, which a quick one does not", () =>
    withFolder(async (folder) => {
      folder.shell([
        "CREATE TABLE holdfast_a (x TEXT); CREATE INDEX holdfast_a_x ON holdfast_a (x)",
        "INSERT INTO holdfast_a VALUES ('needle')",
      ]);
      replaceLast(folder.file(), "needle", "noodle");
      const heavy = heavyReads(folder.file());
      expect(await heavy.check()).toMatchObject({ ok: true });
      const { problems } = await heavy.check({ full: true });
      await heavy.close();
      expect(problems.join()).toContain("row 1 missing from index holdfast_a_x");
    }));

  test("names and skips a table that needs a function only the app has", () =>
    withFolder(async (folder) => {
      folder.shell([
        "CREATE TABLE app_a (x INTEGER); CREATE INDEX app_a_x ON app_a (abs(x)); INSERT INTO app_a VALUES (1)",
        "CREATE TABLE holdfast_a (x INTEGER)",
      ]);
      replaceLast(folder.file(), "abs(x)", "own(x)");
      const heavy = heavyReads(folder.file());
      expect(await heavy.check({ full: true })).toMatchObject({
        ok: true,
        skipped: ["app_a"],
      });
      await heavy.close();
    }));

  test("finds a reference of ours to a row that is not there", () =>
    withFolder(async (folder) => {
      folder.shell([
        "PRAGMA foreign_keys = OFF",
        "CREATE TABLE holdfast_a (id INTEGER PRIMARY KEY); CREATE TABLE holdfast_b (a INTEGER REFERENCES holdfast_a (id)); INSERT INTO holdfast_b VALUES (7)",
      ]);
      const heavy = heavyReads(folder.file());
      expect((await heavy.check({ full: true })).problems).toEqual([
        "row 1 of holdfast_b refers to a row of holdfast_a that does not exist",
      ]);
      await heavy.close();
    }));

  test("of something other than a database is a finding", () =>
    withFolder(async (folder) => {
      const path = folder.file("text.db");
      writeFileSync(path, "no database at all, ".repeat(100));
      const heavy = heavyReads(path);
      expect(await heavy.check({ full: true })).toMatchObject({ ok: false });
      expect(await heavy.check()).toMatchObject({ ok: false });
      await heavy.close();
    }));

  test("is ended by a timeout in the midst of it", () =>
    withHeavyReads(async ({ heavy, folder, database }) => {
      fill(folder, 20_000);
      expect(await rejection(heavy.check({ full: true, timeout: 1 }))).toMatchObject({
        code: "DEADLINE_EXCEEDED",
      });
      await database.write(addNote, { id: "after" });
      expect(await noteCount(database)).toBe(2);
    }));
});

describe("sizes", () => {
  test("give the pages and rows of every table and index", () =>
    withHeavyReads(async ({ heavy, folder, database }) => {
      for (const id of ["a", "b", "c"]) await database.write(addNote, { id });
      folder.shell([
        "CREATE TABLE app_pair (a TEXT, b INTEGER, PRIMARY KEY (a, b)) WITHOUT ROWID",
        "INSERT INTO app_pair VALUES ('x', 1), ('x', 2)",
      ]);
      const sizes = await heavy.sizes();
      const find = (name: string): object | undefined => sizes.find((size) => size.name === name);
      expect(find("app_note")).toEqual({
        name: "app_note",
        kind: "table",
        table: "app_note",
        bytes: 4096,
        rows: 6,
      });
      expect(find("app_note_id_half")).toEqual({
        name: "app_note_id_half",
        kind: "index",
        table: "app_note",
        bytes: 4096,
      });
      expect(find("app_pair")).toMatchObject({ rows: 2, bytes: 4096 });
    }));

  test("count every row of a table with several levels of pages", () =>
    withHeavyReads(async ({ heavy, folder }) => {
      fill(folder, 3_000);
      folder.shell([
        "CREATE TABLE app_wide (k TEXT PRIMARY KEY, v TEXT) WITHOUT ROWID",
        "INSERT INTO app_wide SELECT hex(body), id FROM (SELECT id, substr(body, 1, 300) AS body FROM app_bulk)",
      ]);
      const sizes = await heavy.sizes();
      for (const name of ["app_bulk", "app_wide"])
        expect(sizes.find((size) => size.name === name)?.rows).toBe(3_000);
      const sum = sizes.reduce((bytes, size) => bytes + size.bytes, 0);
      expect(sum).toBeGreaterThan(3_000 * 1_000);
    }));

  test("say that they are estimates where SQLite cannot measure", () =>
    withHeavyReads(
      async ({ heavy, folder }) => {
        fill(folder, 500);
        const sizes = await heavy.sizes();
        expect(sizes.every((size) => size.estimated === true)).toBe(true);
        const bulk = sizes.find((size) => size.name === "app_bulk");
        expect(bulk?.rows).toBe(500);
        expect(bulk?.bytes).toBeGreaterThan(500 * 1_000);
      },
      { dbstat: false },
    ));
});

describe("a file that is replaced while it is open", () => {
  const everyCall: [string, (heavy: HeavyReads, to: string) => Promise<unknown>][] = [
    ["a quick check", (heavy) => heavy.check()],
    ["a full check", (heavy) => heavy.check({ full: true })],
    ["sizes", (heavy) => heavy.sizes()],
    ["an export", (heavy) => collected(heavy.rows("app_note"))],
    ["a backup", (heavy, to) => heavy.backup(to)],
  ];

  test.each(everyCall)("is not what %s looks at", (_, call) =>
    withHeavyReads(async ({ heavy, folder }) => {
      folder.shell(["CREATE TABLE app_note (id TEXT)"], "other.db");
      renameSync(folder.file(), folder.file("moved.db"));
      renameSync(folder.file("other.db"), folder.file());
      const error = await rejection(call(heavy, folder.file("backup.db")));
      expect(error).toMatchObject({ code: "DATABASE_MOVED", retryable: false });
      expect(error.message).toContain("Close the database");
      expect(existsSync(folder.file("backup.db"))).toBe(false);
      unlinkSync(folder.file());
      expect(await rejection(call(heavy, folder.file("backup.db")))).toMatchObject({
        code: "DATABASE_MOVED",
      });
    }),
  );
});

describe("the thread of heavy reads", () => {
  test("refuses what is more than its queue holds, and serves the rest", () =>
    withHeavyReads(async ({ heavy }) => {
      const settled = await Promise.allSettled(Array.from({ length: 65 }, () => heavy.check()));
      expect(settled.filter(({ status }) => status === "fulfilled")).toHaveLength(64);
      expect(settled.at(-1)).toMatchObject({
        reason: { code: "QUEUE_FULL", retryable: true },
      });
    }));

  test("ends with close, which rejects what is under way", () =>
    withHeavyReads(async ({ heavy, folder }) => {
      fill(folder, 1_000);
      const calls = [
        rejection(heavy.check()),
        rejection(heavy.check({ full: true })),
        rejection(heavy.backup(folder.file("copy.db"))),
        rejection(heavy.sizes()),
        rejection(heavy.rows("app_bulk").next()),
      ];
      await heavy.close();
      for (const call of calls) expect(await call).toMatchObject({ code: "DATABASE_CLOSED" });
      expect(await rejection(heavy.check())).toMatchObject({
        code: "DATABASE_CLOSED",
      });
    }));

  test("leaves the writer free: the log can be restarted while pages are read", () =>
    withHeavyReads(async ({ heavy, folder }) => {
      fill(folder, 2_000);
      const pages = heavy.rows("app_bulk", { pageRows: 10 });
      await pages.next();
      // Between two pages there is no snapshot that would keep the log from being emptied.
      const emptied = folder.shell(["PRAGMA wal_checkpoint(TRUNCATE)", "PRAGMA wal_checkpoint"]);
      expect(emptied).toEqual([{ busy: 0, log: 0, checkpointed: 0 }]);
      await pages.return();
    }));

  test("refuses an unknown option", () =>
    withHeavyReads(async ({ heavy }) => {
      expect(() => heavy.check({ fulll: true } as object)).toThrow(
        expect.objectContaining({ code: "OPTION_INVALID" }),
      );
    }));
});
