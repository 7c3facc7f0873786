import { describe, expect, test } from "vitest";
import {
  operation,
  rollbackWith,
  row,
  rows,
  run,
} from "../../src/sql/operation.ts";
import type { Tx } from "../../src/sql/operation.ts";
import { sql } from "../../src/sql/statement.ts";
import type { Statement } from "../../src/sql/statement.ts";
import type { Database } from "../../src/stores/database.ts";
import { rejection, withDatabase } from "./backend.ts";
import type { Backend } from "./backend.ts";
import { addNote, createNoteTable, noteCount, noteHalves } from "./notes.ts";

/** What people get wrong at first, and what they are told. */
export function mistakesSuite(backend: Backend): void {
  const onNotes = (body: (database: Database) => Promise<void>) => () =>
    withDatabase(backend, async (database) => {
      await database.write("tables", createNoteTable);
      await body(database);
    });

  describe("a forgotten `yield*`", () => {
    test.each<[string, () => Tx<unknown>]>([
      [
        "before run",
        function* () {
          void (run(insertHalf("a")) as unknown);
        },
      ],
      [
        "before row, after a statement that wrote",
        function* () {
          yield* run(insertHalf("a"));
          const found = row(sql`SELECT id FROM app_note`) as unknown;
          return found === undefined ? "none" : "some";
        },
      ],
      [
        "before rows, in a body that rolls back",
        function* () {
          void (rows(sql`SELECT id FROM app_note`) as unknown);
          return yield* rollbackWith("undone");
        },
      ],
      [
        "before an operation, between two that have theirs",
        function* () {
          yield* addNote({ id: "a" });
          void (addNote({ id: "b" }) as unknown);
          yield* addNote({ id: "c" });
        },
      ],
      [
        "before operations in a loop",
        function* () {
          ["a", "b"].forEach((id) => void (addNote({ id }) as unknown));
        },
      ],
      [
        "before rollbackWith",
        function* () {
          yield* run(insertHalf("a"));
          void (rollbackWith("undone") as unknown);
        },
      ],
      [
        "inside an operation that was composed",
        function* () {
          yield* forgetful("a");
        },
      ],
    ])("%s is refused, and nothing is stored", (_, body) =>
      onNotes(async (database) => {
        const error = await rejection(database.write("slip", body));
        expect(error).toMatchObject({
          code: "OPERATION_INVALID",
          details: { operation: "slip" },
        });
        expect(error.message).toContain('"slip"');
        expect(error.message).toContain("yield*");
        expect(await noteCount(database)).toBe(0);
      })(),
    );

    test(
      "is refused in an operation that is written, and in a read",
      onNotes(async (database) => {
        expect(await rejection(database.write(forgetful, "a"))).toMatchObject({
          code: "OPERATION_INVALID",
          details: { operation: "forgetful" },
        });
        const read = database.read("look", function* () {
          void (row(sql`SELECT id FROM app_note`) as unknown);
        });
        expect(await rejection(read)).toMatchObject({
          code: "OPERATION_INVALID",
          details: { operation: "look" },
        });
      }),
    );

    test.each<[string, () => Tx<unknown>]>([
      [
        "run",
        function* () {
          const inserting = run(insertHalf("a")) as unknown;
          return inserting;
        },
      ],
      [
        "a piece of one's own",
        function* () {
          return twoHalves("a");
        },
      ],
    ])("after return, before %s, is refused", (_, body) =>
      onNotes(async (database) => {
        const error = await rejection(database.write("slip", body));
        expect(error).toMatchObject({ code: "OPERATION_INVALID" });
        expect(error.message).toContain("return yield*");
        expect(await noteCount(database)).toBe(0);
      })(),
    );

    test(
      "is blamed on the body that forgot it, whatever runs beside it",
      onNotes(async (database) => {
        const calls = Array.from({ length: 60 }, (_, index) =>
          index % 3 === 0
            ? database.write(forgetful, `n${index}`)
            : database.write("whole", function* () {
                // Made first and started later, which is no mistake.
                const later = addNote({ id: `o${index}` }) as Tx<unknown>;
                yield* twoHalves(`n${index}`);
                yield* later;
              }),
        );
        const settled = await Promise.allSettled(calls);
        expect(settled.map((result) => result.status)).toEqual(
          settled.map((_, index) =>
            index % 3 === 0 ? "rejected" : "fulfilled",
          ),
        );
        expect(await noteCount(database)).toBe(40 * 4);
      }),
    );

    test(
      "does not hide what the body itself threw",
      onNotes(async (database) => {
        const error = await rejection(
          database.write("throws", function* () {
            void (run(insertHalf("a")) as unknown);
            throw new Error("mine");
          }),
        );
        expect(error.message).toBe("mine");
      }),
    );
  });

  describe("a statement in the wrong hands", () => {
    const insert = insertHalf("a");
    const returning = sql`INSERT INTO app_note (id, half) VALUES ('a', 1) RETURNING id`;
    test.each<[string, () => Tx<unknown>, string]>([
      ["row with INSERT", () => row(insert), "RETURNING"],
      ["rows with INSERT", () => rows(insert), "RETURNING"],
      ["row with UPDATE", () => row(sql`UPDATE app_note SET half = 2`), "run"],
      ["rows with DELETE", () => rows(sql`DELETE FROM app_note`), "run"],
      [
        "rows with DDL",
        () => rows(sql`CREATE TABLE app_other (n INTEGER)`),
        "run",
      ],
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
        expect(await database.read("rows", () => rows(both))).toEqual([
          { id: "a" },
          { id: "b" },
        ]);
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
        expect(error.message + JSON.stringify(error.details)).not.toContain(
          secret,
        );
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
        expect(
          await rejection(database.read(addNote, { id: "a" })),
        ).toMatchObject({
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

const forgetful = operation("forgetful", {
  key: (id: string) => id,
  *one(id) {
    yield* run(insertHalf(id));
    void (addNote({ id: `${id}x` }) as unknown);
  },
});

function insertHalf(id: string): Statement {
  return sql`INSERT INTO app_note (id, half, body) VALUES (${id}, 1, NULL)`;
}

function* twoHalves(id: string) {
  yield* run(insertHalf(id));
  yield* run(
    sql`INSERT INTO app_note (id, half, body) VALUES (${id}, 2, NULL)`,
  );
}
