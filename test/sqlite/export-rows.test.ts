import { describe, expect, test } from "vitest";
import { rejection } from "../conformance/backend.ts";
import { addNote } from "../conformance/notes.ts";
import { loadDriver } from "../../src/backends/sqlite/drivers/drivers.ts";
import { identityOf } from "../../src/backends/sqlite/heavy/heavy-connection.js";
import { HeavyRequests } from "../../src/backends/sqlite/heavy/heavy-requests.ts";
import { driverName, withFolder } from "./place.ts";
import { isDeep } from "../depth.ts";
import { collected, fill, withHeavyReads } from "./heavy.ts";

const flat = <T>(pages: readonly { readonly rows: readonly T[] }[]): T[] =>
  pages.flatMap(({ rows }) => rows);

/** Their age ends no page, however busy the machine is. */
const patient = { maxSnapshotMs: 60_000 };

describe("an export of a table", () => {
  test("gives all rows in the order of their rowid, in pages of the wanted size", () =>
    withHeavyReads(async ({ heavy, database }) => {
      for (const id of ["c", "a", "b"]) await database.write(addNote, { id });
      const pages = await collected(heavy.rows("app_note", { pageRows: 4 }));
      expect(pages.map(({ rows }) => rows.length)).toEqual([4, 2]);
      expect(flat(pages)).toEqual(
        ["c1", "c2", "a1", "a2", "b1", "b2"].map((name) => ({
          id: name[0],
          half: Number(name[1]),
          body: "",
        })),
      );
    }, patient));

  test("of nothing is no page", () =>
    withHeavyReads(async ({ heavy }) => {
      expect(await collected(heavy.rows("app_note"))).toEqual([]);
    }));

  test("keeps bytes, nulls, negative and real numbers as they are", () =>
    withHeavyReads(async ({ heavy, folder }) => {
      folder.shell([
        "CREATE TABLE app_odd (rowid TEXT, a, b)",
        "INSERT INTO app_odd VALUES ('not a key', x'00ff10', NULL), ('two', -9007199254740991, 1e300), ('ü', '', 0.5)",
      ]);
      expect(flat(await collected(heavy.rows("app_odd")))).toEqual([
        { rowid: "not a key", a: new Uint8Array([0, 255, 16]), b: null },
        { rowid: "two", a: -9007199254740991, b: 1e300 },
        { rowid: "ü", a: "", b: 0.5 },
      ]);
    }));

  test("names damaged rows and goes on past them", () =>
    withHeavyReads(async ({ heavy, folder }) => {
      folder.shell([
        "CREATE TABLE app_number (id INTEGER PRIMARY KEY, n INTEGER)",
        "INSERT INTO app_number VALUES (-5, 1), (2, 9007199254740992), (3, 3), (9007199254740993, 4)",
      ]);
      const pages = await collected(heavy.rows("app_number", { pageRows: 1 }));
      expect(flat(pages)).toEqual([
        { id: -5, n: 1 },
        { id: 3, n: 3 },
      ]);
      expect(pages.flatMap(({ damaged }) => damaged)).toEqual([
        { table: "app_number", key: [2] },
        { table: "app_number", key: [9007199254740993n] },
      ]);
    }));

  test("walks a table without rowid by its primary key", () =>
    withHeavyReads(async ({ heavy, folder }) => {
      folder.shell([
        'CREATE TABLE app_pair (v TEXT, b INTEGER, "a ""quoted""" TEXT, k BLOB, PRIMARY KEY ("a ""quoted""", b DESC, k)) WITHOUT ROWID',
        `WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 99)
         INSERT INTO app_pair SELECT 'v' || i, i / 3, 'k' || (i % 2), randomblob(i % 3) FROM n`,
      ]);
      const pages = await collected(heavy.rows("app_pair", { pageRows: 7 }));
      expect(pages).toHaveLength(15);
      const values = flat(pages).map((found) => found["v"]);
      expect(new Set(values).size).toBe(100);
      expect(values).toHaveLength(100);
    }, patient));

  test("passes over no row where the key compares otherwise than the columns", () =>
    withHeavyReads(async ({ heavy, folder }) => {
      folder.shell([
        "CREATE TABLE app_case (a TEXT COLLATE NOCASE, b INTEGER, PRIMARY KEY (a COLLATE BINARY, b)) WITHOUT ROWID",
        "INSERT INTO app_case VALUES ('a', 1), ('A', 1), ('b', 1), ('B', 1), ('a', 2)",
      ]);
      const pages = await collected(heavy.rows("app_case", { pageRows: 1 }));
      expect(flat(pages)).toEqual([
        { a: "A", b: 1 },
        { a: "B", b: 1 },
        { a: "a", b: 1 },
        { a: "a", b: 2 },
        { a: "b", b: 1 },
      ]);
    }));

  test("goes on behind the last row of an earlier page", () =>
    withHeavyReads(async ({ heavy, folder }) => {
      fill(folder, 10);
      const [first] = await collected(heavy.rows("app_bulk", { pageRows: 4 }));
      const after = first?.last ?? [];
      const rest = flat(await collected(heavy.rows("app_bulk", { after })));
      expect(rest.map(({ id }) => id)).toEqual([5, 6, 7, 8, 9, 10]);
      expect(await rejection(collected(heavy.rows("app_bulk", { after: [1, 2] })))).toMatchObject({
        code: "OPTION_INVALID",
      });
    }, patient));

  test("ends a page at a megabyte, whatever the number of rows", () =>
    withHeavyReads(async ({ heavy, folder }) => {
      fill(folder, 3_000);
      const pages = await collected(heavy.rows("app_bulk", { pageRows: 100_000 }));
      expect(pages.length).toBeGreaterThan(2);
      expect(flat(pages)).toHaveLength(3_000);
    }));

  test("ends a page when its snapshot is old enough, and gives all rows", () =>
    withHeavyReads(
      async ({ heavy, folder }) => {
        fill(folder, 3_000);
        const pages = await collected(heavy.rows("app_bulk"));
        expect(flat(pages).map(({ id }) => id)).toEqual(
          Array.from({ length: 3_000 }, (_, index) => index + 1),
        );
      },
      { maxSnapshotMs: 1 },
    ));

  test.each([
    "nothing",
    'app_note" --',
    "app_note; DROP TABLE app_note",
    "sqlite_temp_schema",
    "app_view",
  ])("refuses %s as an unknown table and names those there are", (table) =>
    withHeavyReads(async ({ heavy, folder }) => {
      folder.shell(["CREATE VIEW app_view AS SELECT 1 AS x"]);
      const error = await rejection(collected(heavy.rows(table)));
      expect(error).toMatchObject({ code: "TABLE_UNKNOWN", retryable: false });
      expect(error.message).toContain("app_note, holdfast_");
    }),
  );

  test.each<readonly [string, unknown, unknown]>([
    ["a function as the table", () => 1, {}],
    ["nothing as the table", undefined, {}],
    ["a symbol as the table", Symbol("app_note"), {}],
    ["a function among the values to begin behind", "app_note", { after: [() => 1] }],
    ["a single value to begin behind", "app_note", { after: 5 }],
    ["null to begin behind", "app_note", { after: null }],
  ])("refuses %s, and every later read works", (_, table, options) =>
    withHeavyReads(async ({ heavy, database }) => {
      await database.write(addNote, { id: "a" });
      const mistaken = heavy.rows(table as string, options as object);
      expect(await rejection(collected(mistaken))).toMatchObject({
        code: "OPTION_INVALID",
        retryable: false,
      });
      expect(flat(await collected(heavy.rows("app_note")))).toHaveLength(2);
      expect((await heavy.check()).ok).toBe(true);
      expect((await heavy.sizes()).length).toBeGreaterThan(0);
    }),
  );

  test("reads no page before it is asked for it", () =>
    withHeavyReads(async ({ heavy, folder }) => {
      folder.shell([
        "CREATE TABLE app_n (id INTEGER PRIMARY KEY, n INTEGER)",
        "INSERT INTO app_n VALUES (1, 0), (2, 0), (3, 0)",
      ]);
      const pages = heavy.rows("app_n", { pageRows: 1 });
      const seen: unknown[] = [];
      for (let change = 1; change <= 3; change += 1) {
        seen.push((await pages.next()).value?.rows);
        folder.shell([`UPDATE app_n SET n = ${change}`]);
      }
      // Each page shows the change that was made after the one before it was taken.
      expect(seen).toEqual([[{ id: 1, n: 0 }], [{ id: 2, n: 1 }], [{ id: 3, n: 2 }]]);
    }));

  test("ends when its signal aborts, and others go on", () =>
    withHeavyReads(async ({ heavy, folder }) => {
      fill(folder, 100);
      const abort = new AbortController();
      const stopped = heavy.rows("app_bulk", {
        pageRows: 10,
        signal: abort.signal,
      });
      const other = heavy.rows("app_bulk", { pageRows: 10 });
      await stopped.next();
      await other.next();
      const pending = rejection(stopped.next());
      abort.abort(new Error("no longer needed"));
      expect(await pending).toMatchObject({ code: "ABORTED" });
      expect(await stopped.next()).toEqual({ done: true, value: undefined });
      expect(flat(await collected(other))).toHaveLength(90);
    }));

  test("beside writers holds every row that was there before it began", () =>
    withHeavyReads(async ({ heavy, database }) => {
      const notes = isDeep ? 5_000 : 300;
      const write = (prefix: string): Promise<unknown> =>
        Promise.all(
          Array.from({ length: notes }, (_, index) =>
            database.write(addNote, { id: `${prefix}${index}` }),
          ),
        );
      await write("before");
      const [pages] = await Promise.all([
        collected(heavy.rows("app_note", { pageRows: 50 })),
        write("during"),
      ]);
      const ids = flat(pages).map((note) => `${String(note["id"])}/${String(note["half"])}`);
      expect(new Set(ids).size).toBe(ids.length);
      expect(ids.filter((id) => id.startsWith("before"))).toHaveLength(2 * notes);
    }));
});

test("a question that cannot be sent to the thread is refused alone", () =>
  withFolder(async (folder) => {
    await folder.open();
    const file = folder.file();
    const requests = new HeavyRequests(loadDriver(driverName), {
      path: file,
      identity: identityOf(file) ?? "",
    });
    const { signal } = new AbortController();
    try {
      const answers = await Promise.allSettled([
        requests.ask("page", { table: () => 1 }, signal),
        requests.ask("tables", {}, signal),
      ]);
      expect(answers.map(({ status }) => status)).toEqual(["rejected", "fulfilled"]);
    } finally {
      await requests.close();
    }
  }));
