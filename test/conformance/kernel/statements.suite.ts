import { describe, expect, test } from "vitest";
import {
  row,
  rows,
  run,
  type Tx,
  sql,
  type Statement,
  type Database,
} from "../../../src/kernel.ts";
import { rejection, withDatabase } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { addNote, createNoteTable, noteCount, noteHalves } from "../notes.ts";

/** Which statements `row`, `rows` and `run` take, and what the errors of statements tell. */
export function statementsSuite(backend: Backend): void {
  const onNotes = (body: (database: Database) => Promise<void>) => () =>
    withDatabase(backend, async (database) => {
      await database.write("tables", createNoteTable);
      await body(database);
    });

  describe("a statement in the wrong hands", () => {
    const insert = insertHalf("a");
    const returning = sql`INSERT INTO app_note (id, half) VALUES ('a', 1) RETURNING id`;
    test.each<[string, () => Tx<unknown>, string]>([
      ["row with INSERT", () => row(insert), "RETURNING"],
      ["rows with INSERT", () => rows(insert), "RETURNING"],
      ["row with UPDATE", () => row(sql`UPDATE app_note SET half = 2`), "run"],
      ["rows with DELETE", () => rows(sql`DELETE FROM app_note`), "run"],
      ["rows with DDL", () => rows(sql`CREATE TABLE app_other (n INTEGER)`), "run"],
      [
        "row with WITH … INSERT",
        () =>
          row(
            sql`WITH given AS (SELECT 'a' AS id) INSERT INTO app_note (id, half) SELECT id, 1 FROM given`,
          ),
        "run",
      ],
      ["run with SELECT", () => run(sql`SELECT id FROM app_note`), "row"],
      [
        "run with WITH … SELECT",
        () => run(sql`WITH given AS (SELECT 1 AS n) SELECT n FROM given`),
        "row",
      ],
      ["run with VALUES", () => run(sql`VALUES (1)`), "row"],
      ["run with RETURNING", () => run(returning), "row"],
    ])("%s is refused before it runs", (_, body, remedy) =>
      onNotes(async (database) => {
        const error = await rejection(database.write("hands", body));
        expect(error).toMatchObject({
          code: "OPERATION_INVALID",
          details: { operation: "hands", statement: expect.any(String) },
        });
        expect(error.message).toContain('"hands"');
        expect(error.message).toContain(remedy);
        expect(await noteCount(database)).toBe(0);
        // Nor is the next call disturbed by it.
        await database.write(addNote, { id: "b" });
        expect(await noteHalves(database)).toBe("b1 b2");
      })(),
    );

    test(
      "in the right ones it answers",
      onNotes(async (database) => {
        expect(await database.write("row", () => row(returning))).toEqual({
          id: "a",
        });
        expect(await database.write("run", () => run(insertHalf("b")))).toBe(1);
        const both = sql`
          -- RETURNING in a comment, 'SELECT' in a text
          WITH given AS (SELECT id FROM app_note WHERE id <> 'UPDATE')
          SELECT id FROM given ORDER BY id`;
        expect(await database.read("rows", () => rows(both))).toEqual([{ id: "a" }, { id: "b" }]);
        const updated = await database.write("returning", () =>
          rows(
            sql`WITH given AS (SELECT 'a' AS id) UPDATE app_note SET body = 'x' WHERE id IN (SELECT id FROM given) RETURNING body`,
          ),
        );
        expect(updated).toEqual([{ body: "x" }]);
        const quoted = sql`UPDATE app_note SET body = 'RETURNING' WHERE id = ${"a"}`;
        expect(await database.write("quoted", () => run(quoted))).toBe(1);
      }),
    );
  });

  describe("the error of a statement", () => {
    const secret = "s3cret";
    test.each<[string, string, Statement]>([
      [
        "violates a constraint",
        "CONSTRAINT_VIOLATED",
        sql`INSERT INTO app_note (id, half, body) VALUES (${secret}, ${3}, NULL)`,
      ],
      [
        "does not parse",
        "STATEMENT_FAILED",
        sql`INSERT INTO app_note (id, halb) VALUES (${secret}, ${1})`,
      ],
      [
        "binds what it may not",
        "PARAMETER_INVALID",
        sql`INSERT INTO app_note (id, half) VALUES (${`${secret}\0`}, ${1})`,
      ],
    ])("that %s names operation and statement, and no value", (_, code, bad) =>
      onNotes(async (database) => {
        const error = await rejection(database.write("addOne", () => run(bad)));
        expect(error).toMatchObject({
          code,
          details: {
            operation: "addOne",
            statement: expect.stringMatching(/^INSERT INTO app_note \(id, hal/),
          },
        });
        expect(error.message).toContain('"addOne"');
        expect(error.message).toContain("INSERT INTO app_note");
        expect(error.message + JSON.stringify(error.details)).not.toContain(secret);
      })(),
    );

    test(
      "a long one is cut, and its line breaks are left out",
      onNotes(async (database) => {
        const error = await rejection(
          database.read("long", () =>
            rows(sql`
              SELECT id, half
                FROM app_nowhere
               WHERE id <> 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'
                 OR id <> 'the end'`),
          ),
        );
        const statement = String(error.details?.["statement"]);
        expect(statement).toMatch(/^SELECT id, half FROM app_nowhere WHERE/);
        expect(statement).toMatch(/…$/);
        expect(statement).not.toContain("the end");
      }),
    );

    test(
      "a write in a read names the statement too",
      onNotes(async (database) => {
        expect(await rejection(database.read(addNote, { id: "a" }))).toMatchObject({
          code: "WRITE_IN_READ",
          details: {
            operation: "addNote",
            statement: expect.stringContaining("INSERT INTO app_note"),
          },
        });
      }),
    );
  });
}

function insertHalf(id: string): Statement {
  return sql`INSERT INTO app_note (id, half, body) VALUES (${id}, 1, NULL)`;
}
