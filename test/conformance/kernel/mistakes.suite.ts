import { describe, expect, test } from "vitest";
import {
  operation,
  rollbackWith,
  row,
  rows,
  run,
  type Tx,
  sql,
  type Statement,
  type Database,
  type OwnerId,
} from "../../../src/kernel.ts";
import { rejection, withDatabase } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { addNote, createNoteTable, noteCount } from "../notes.ts";

/** What people get wrong at first, and what they are told. */
export function mistakesSuite(backend: Backend): void {
  const onNotes = (body: (database: Database) => Promise<void>) => () =>
    withDatabase(backend, async (database) => {
      await database.write("tables", createNoteTable);
      await body(database);
    });

  test("asking for the life of what is no owner is refused", () =>
    withDatabase(backend, async (database) => {
      for (const owner of ["x".repeat(400), "../../etc/passwd", "", "Own_x", 7])
        expect(await rejection(database.liveness(owner as OwnerId))).toMatchObject({
          code: "ID_MALFORMED",
        });
    }));

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
        "before rows, where nothing is left but yield",
        function* () {
          yield* run(insertHalf("a"));
          yield undefined as never;
        },
      ],
      [
        "before rows, in a loop over them",
        function* () {
          yield* run(insertHalf("a"));
          const found = rows(sql`SELECT id FROM app_note`) as Iterable<unknown>;
          for (const note of found) void note;
        },
      ],
      [
        "before rows, where the first of them is taken",
        function* () {
          yield* run(insertHalf("a"));
          const found = rows(sql`SELECT id FROM app_note`) as Iterable<unknown>;
          const [first] = found;
          return typeof first;
        },
      ],
      [
        "before an operation, in a loop over it",
        function* () {
          const adding = addNote({ id: "a" }) as Iterable<unknown>;
          for (const step of adding) void step;
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
          settled.map((_, index) => (index % 3 === 0 ? "rejected" : "fulfilled")),
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

  describe("what is not what it should be", () => {
    test.each<[string, (database: Database) => Promise<unknown>, string]>([
      [
        "an operation that was called already",
        (database) => database.write(addNote({ id: "a" }) as never, {}),
        "not deposit(input)",
      ],
      [
        "a body without a name",
        (database) => database.write(createNoteTable as never, {}),
        'write("name", function*',
      ],
      [
        "a name without a body",
        (database) => database.write("nothing", undefined as never),
        '"nothing" has no body',
      ],
      [
        "text for a statement",
        (database) => database.write("text", () => run("DELETE FROM x" as never)),
        "tag `sql`",
      ],
      [
        "a pragma",
        (database) => database.write("pragma", () => run(sql`PRAGMA x = 1`)),
        "option of the open",
      ],
      [
        "OR FAIL",
        (database) =>
          database.write("or", () => run(sql`INSERT OR FAIL INTO app_note (id) VALUES (1)`)),
        "ON CONFLICT",
      ],
    ])("%s is refused with what to write", (_, call, told) =>
      onNotes(async (database) => {
        const error = await rejection(call(database));
        expect(error).toMatchObject({ code: "OPERATION_INVALID" });
        expect(error.message).toContain(told);
        expect(await noteCount(database)).toBe(0);
      })(),
    );

    test("an operation without a name, or with a wrong part, is refused where it is made", () => {
      const forms = { key: () => "k", one: function* () {} };
      for (const [name, given, told] of [
        ["", forms, "needs a name"],
        ["a", { ...forms, key: undefined }, "`key: (input) => …`"],
        ["a", { ...forms, many: {} }, "`*many(inputs) { … }`"],
      ] as const)
        expect(() => operation(name, given as never)).toThrow(
          expect.objectContaining({
            code: "OPERATION_INVALID",
            message: expect.stringContaining(told),
          }),
        );
    });
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
  yield* run(sql`INSERT INTO app_note (id, half, body) VALUES (${id}, 2, NULL)`);
}
