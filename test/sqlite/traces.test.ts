import { describe, expect, test } from "vitest";
import { row, run, sql, type Database } from "../../src/kernel.ts";
import { rejection } from "../conformance/backend.ts";
import { addNote, createNoteTable, noteHalves } from "../conformance/notes.ts";
import { withFolder } from "./place.ts";

/** Ways in which SQLite keeps half of what failed, unless somebody undoes it. */
describe("a call that fails leaves no trace even when", () => {
  const onTables = (body: (database: Database) => Promise<void>) => () =>
    withFolder(async (folder) => {
      const setup = await folder.open();
      await setup.write("tables", createNoteTable);
      await setup.close();
      folder.shell([
        "CREATE TABLE app_fails (id TEXT UNIQUE ON CONFLICT FAIL)",
        "CREATE TABLE app_number (n INTEGER)",
        "CREATE TRIGGER app_number_limit AFTER INSERT ON app_number WHEN NEW.n = 13 BEGIN SELECT RAISE(FAIL, 'unlucky'); END",
      ]);
      await body(await folder.open());
    });
  const count = (database: Database, table: "app_fails" | "app_number") =>
    database.read("count", () =>
      row<{ n: number }>(
        table === "app_fails"
          ? sql`SELECT count(*) AS n FROM app_fails`
          : sql`SELECT count(*) AS n FROM app_number`,
      ),
    );

  test(
    "the table keeps the rows before the violation",
    onTables(async (database) => {
      const error = await rejection(
        database.write("half", () =>
          run(sql`INSERT INTO app_fails (id) VALUES ('x'), ('y'), ('x')`),
        ),
      );
      expect(error).toMatchObject({ code: "CONSTRAINT_VIOLATED" });
      expect(await count(database, "app_fails")).toEqual({ n: 0 });
    }),
  );

  test(
    "a trigger fails the statement without undoing it",
    onTables(async (database) => {
      await rejection(
        database.write("unlucky", () =>
          run(sql`INSERT INTO app_number (n) VALUES (12), (13), (14)`),
        ),
      );
      expect(await count(database, "app_number")).toEqual({ n: 0 });
    }),
  );

  test(
    "the row it returns cannot be read",
    onTables(async (database) => {
      const error = await rejection(
        database.write("large", () =>
          row(sql`INSERT INTO app_number (n) VALUES (9007199254740993) RETURNING n`),
        ),
      );
      expect(error).toMatchObject({ code: "CORRUPT_ROW" });
      expect(await count(database, "app_number")).toEqual({ n: 0 });
    }),
  );

  test(
    "good calls share its batch",
    onTables(async (database) => {
      const settled = await Promise.allSettled([
        database.write(addNote, { id: "a" }),
        database.write("half", () =>
          run(sql`INSERT INTO app_fails (id) VALUES ('x'), ('y'), ('x')`),
        ),
        database.write(addNote, { id: "b" }),
      ]);
      expect(settled.map((result) => result.status)).toEqual([
        "fulfilled",
        "rejected",
        "fulfilled",
      ]);
      expect(await count(database, "app_fails")).toEqual({ n: 0 });
      expect(await noteHalves(database)).toBe("a1 a2 b1 b2");
    }),
  );
});

describe("a template is refused that", () => {
  const written = (text: string) => () => sql(Object.assign([text], { raw: [text] }));

  test.each([
    "-- a comment first\nCOMMIT",
    "/* another */ ROLLBACK",
    " ; COMMIT",
    "-- it's time\nCOMMIT -- that's all",
    "INSERT OR FAIL INTO t VALUES (1)",
    "UPDATE OR ROLLBACK t SET n = 1",
    "ABORT",
  ])("controls the transaction: %j", (text) => {
    expect(written(text)).toThrow(expect.objectContaining({ code: "OPERATION_INVALID" }));
  });

  test("holds several statements", () => {
    expect(written("SELECT 1; COMMIT")).toThrow("several statements");
    expect(written("SELECT ';' AS semicolon;")).not.toThrow();
    expect(written("SELECT 1 -- ; COMMIT")).not.toThrow();
    expect(written("CREATE TRIGGER t AFTER INSERT ON a BEGIN SELECT 1; END")).not.toThrow();
    expect(written("DO $body$ BEGIN NULL; END $body$")).not.toThrow();
  });
});
