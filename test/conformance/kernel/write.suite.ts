import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  integer,
  strict,
  operation,
  rollbackWith,
  row,
  rows,
  run,
  sql,
  type Database,
} from "../../../src/kernel.ts";
import { isDeep, seed } from "../../depth.ts";
import { rejection, withDatabase } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { hostileThrows } from "../hostile-throws.ts";
import { addNote, addNoteAndThrow, createNoteTable, noteCount, noteHalves } from "../notes.ts";

const none = { p50: -1, p99: -1 };

export function writeSuite(backend: Backend): void {
  const onNotes = (body: (database: Database) => Promise<void>) => () =>
    withDatabase(backend, async (database) => {
      await database.write("tables", createNoteTable);
      await body(database);
    });

  describe("writing", () => {
    test(
      "returns what the operation returned, and a read sees it",
      onNotes(async (database) => {
        expect(await database.write(addNote, { id: "a" })).toBe("a");
        expect(await noteHalves(database)).toBe("a1 a2");
      }),
    );

    test(
      "[E82] a call that fails after it wrote leaves no trace, alone",
      onNotes(async (database) => {
        const error = await rejection(database.write(addNoteAndThrow, { id: "b" }));
        expect(error.message).toBe("refused b");
        expect(await noteCount(database)).toBe(0);
      }),
    );

    test(
      "[E82] a call that fails after it wrote leaves no trace amid good ones, and they succeed",
      onNotes(async (database) => {
        const settled = await Promise.allSettled([
          database.write(addNote, { id: "a" }),
          database.write(addNoteAndThrow, { id: "b" }),
          database.write(addNote, { id: "c" }),
          database.write(addNoteAndThrow, { id: "d" }),
          database.write(addNote, { id: "e" }),
        ]);
        expect(settled.map((result) => result.status)).toEqual([
          "fulfilled",
          "rejected",
          "fulfilled",
          "rejected",
          "fulfilled",
        ]);
        expect(await noteHalves(database)).toBe("a1 a2 c1 c2 e1 e2");
      }),
    );

    test(
      "random failures in full batches change nothing and disturb no neighbour",
      onNotes(async (database) => {
        await fc.assert(
          fc.asyncProperty(
            fc.array(fc.constantFrom("good", "throws", "conflicts", "gives up"), {
              maxLength: 300,
            }),
            async (kinds) => {
              await database.write("clear", () => run(sql`DELETE FROM app_note`));
              await database.write(addNote, { id: "taken" });
              const calls = kinds.map((kind, index) => {
                const id = `n${String(index).padStart(3, "0")}`;
                if (kind === "good") return database.write(addNote, { id });
                if (kind === "throws") return database.write(addNoteAndThrow, { id });
                if (kind === "gives up") return database.write("givesUp", () => addAndGiveUp(id));
                return database.write("conflicts", () => addThenConflict(id));
              });
              const settled = await Promise.allSettled(calls);
              expect(settled.map((result) => result.status)).toEqual(
                kinds.map((kind) =>
                  kind === "good" || kind === "gives up" ? "fulfilled" : "rejected",
                ),
              );
              const good = kinds.flatMap((kind, index) =>
                kind === "good" ? [`n${String(index).padStart(3, "0")}`] : [],
              );
              expect(await noteHalves(database)).toBe(
                [...good, "taken"].map((id) => `${id}1 ${id}2`).join(" "),
              );
            },
          ),
          { numRuns: isDeep ? 60 : 6, seed },
        );
      }),
    );

    test(
      "a verdict rolls back and still answers, also from inside a composition",
      onNotes(async (database) => {
        const answer = await database.write("outer", function* () {
          yield* run(sql`INSERT INTO app_note (id, half, body) VALUES (${"x"}, 1, NULL)`);
          const inner = yield* addAndGiveUp("y");
          return `outer of ${inner}`;
        });
        expect(answer).toBe("outer of gave up y");
        expect(await noteCount(database)).toBe(0);
      }),
    );

    test(
      "a statement after a verdict is refused",
      onNotes(async (database) => {
        const error = await rejection(
          database.write("late", function* () {
            yield* rollbackWith(1);
            return yield* run(sql`INSERT INTO app_note (id, half, body) VALUES ('late', 1, NULL)`);
          }),
        );
        expect(error).toMatchObject({
          code: "OPERATION_INVALID",
          retryable: false,
        });
        expect(await noteCount(database)).toBe(0);
      }),
    );

    test(
      "operations compose into one transaction",
      onNotes(async (database) => {
        await database.write("both", function* () {
          yield* addNote({ id: "a" });
          yield* addNote({ id: "b" });
        });
        expect(await noteHalves(database)).toBe("a1 a2 b1 b2");
        const error = await rejection(
          database.write("neither", function* () {
            yield* addNote({ id: "c" });
            yield* addNote({ id: "a" });
          }),
        );
        expect(error).toMatchObject({
          code: "CONSTRAINT_VIOLATED",
          details: { constraint: "app_note_id_half", table: "app_note" },
        });
        expect(await noteHalves(database)).toBe("a1 a2 b1 b2");
      }),
    );

    test(
      "a body that swallows a failed statement fails all the same",
      onNotes(async (database) => {
        await database.write(addNote, { id: "a" });
        const error = await rejection(
          database.write("swallows", function* () {
            yield* run(sql`INSERT INTO app_note (id, half, body) VALUES ('b', 1, NULL)`);
            try {
              yield* addNote({ id: "a" });
            } catch {
              // On Postgres the transaction is aborted now; SQLite must not differ.
            }
            return "fine";
          }),
        );
        expect(error).toMatchObject({ code: "CONSTRAINT_VIOLATED" });
        expect(await noteHalves(database)).toBe("a1 a2");
      }),
    );

    test(
      "a body may turn a failed statement into a value by rolling back",
      onNotes(async (database) => {
        await database.write(addNote, { id: "a" });
        const answer = await database.write("turns", function* () {
          try {
            return yield* addNote({ id: "a" });
          } catch {
            return yield* rollbackWith("was there");
          }
        });
        expect(answer).toBe("was there");
        expect(await noteHalves(database)).toBe("a1 a2");
      }),
    );

    test(
      "a violated CHECK is reported by its name",
      onNotes(async (database) => {
        const error = await rejection(
          database.write("half", () =>
            run(sql`INSERT INTO app_note (id, half, body) VALUES ('a', 3, NULL)`),
          ),
        );
        expect(error).toMatchObject({
          code: "CONSTRAINT_VIOLATED",
          details: { constraint: "app_note_half" },
        });
      }),
    );

    test(
      "a statement that does not parse is a failed statement",
      onNotes(async (database) => {
        const error = await rejection(
          database.write("typo", () => run(sql`INSERT INTO nowhere VALUES (1)`)),
        );
        expect(error).toMatchObject({
          code: "STATEMENT_FAILED",
          retryable: false,
        });
      }),
    );

    test(
      "calls are counted and timed by the name of their operation, reads and failures included",
      onNotes(async (database) => {
        await Promise.all(
          Array.from({ length: 20 }, (_, index) =>
            database.write(addNoteTogether, { id: `n${index}` }),
          ),
        );
        await database.write("mine", () => run(sql`SELECT 1`)).catch(() => undefined);
        await rejection(database.write("typo", () => run(sql`INSERT INTO nowhere VALUES (1)`)));
        await database.read("look", () => rows(sql`SELECT 1 AS one`));
        const { operations } = database.stats();
        expect(operations[addNoteTogether.name]?.count).toBe(20);
        for (const name of [addNoteTogether.name, "mine", "typo", "look"]) {
          const { count = 0, waitingMs, runningMs } = operations[name] ?? {};
          expect(count).toBeGreaterThan(0);
          for (const { p50, p99 } of [waitingMs ?? none, runningMs ?? none]) {
            expect(p50).toBeGreaterThanOrEqual(0);
            expect(p99).toBeGreaterThanOrEqual(p50);
          }
        }
        expect(operations[addNoteTogether.name]?.runningMs.p99).toBeGreaterThan(0);
      }),
    );

    test(
      "[E83] a thousand calls at once share few commits, and one caller is answered in order",
      onNotes(async (database) => {
        const before = database.stats().commits;
        const answered: number[] = [];
        await Promise.all(
          Array.from({ length: 1_000 }, async (_, index) => {
            await database.write(addNoteTogether, { id: `n${index}` });
            answered.push(index);
          }),
        );
        expect(await noteCount(database)).toBe(2_000);
        expect(answered).toEqual(Array.from({ length: 1_000 }, (_, index) => index));
        expect(database.stats().commits - before).toBeLessThan(200);
      }),
    );
  });

  describe("a constraint that is looked at when the transaction commits", () => {
    const onFamilies = (body: (database: Database) => Promise<void>) =>
      onNotes(async (database) => {
        await database.write("families", function* () {
          yield* run(sql`CREATE TABLE app_parent (id ${integer} PRIMARY KEY) ${strict}`);
          yield* run(
            sql`CREATE TABLE app_child (parent ${integer} REFERENCES app_parent (id) DEFERRABLE INITIALLY DEFERRED) ${strict}`,
          );
        });
        await body(database);
      });
    /** Its parents are there, once it ends, or are not. */
    const addChild = (database: Database, parent: number, count: () => void = () => undefined) =>
      database.write("child", function* () {
        count();
        yield* run(sql`INSERT INTO app_child (parent) VALUES (${parent})`);
        if (parent < 100) yield* run(sql`INSERT INTO app_parent (id) VALUES (${parent})`);
        return parent;
      });

    test(
      "fails the one call that violates it, which is not to be tried again",
      onFamilies(async (database) => {
        let bodies = 0;
        const error = await rejection(addChild(database, 100, () => (bodies += 1)));
        expect(error).toMatchObject({
          code: "CONSTRAINT_VIOLATED",
          retryable: false,
        });
        expect(bodies).toBe(1);
      }),
    );

    test(
      "disturbs no neighbour: each is run a few times at most, and stored once",
      onFamilies(async (database) => {
        const parents = [1, 100, 2, 3, 101, 4];
        const bodies = new Map<number, number>();
        const settled = await Promise.allSettled(
          parents.map((parent) =>
            addChild(database, parent, () => bodies.set(parent, (bodies.get(parent) ?? 0) + 1)),
          ),
        );
        expect(
          settled.map((result) =>
            result.status === "fulfilled" ? result.value : (result.reason as { code: string }).code,
          ),
        ).toEqual([1, "CONSTRAINT_VIOLATED", 2, 3, "CONSTRAINT_VIOLATED", 4]);
        expect(Math.max(...bodies.values())).toBeLessThanOrEqual(2);
        const stored = await database.read("children", () =>
          rows<{ parent: number }>(sql`SELECT parent FROM app_child ORDER BY parent`),
        );
        expect(stored.map(({ parent }) => parent)).toEqual([1, 2, 3, 4]);
      }),
    );
  });

  describe("a body that throws", () => {
    test.each(hostileThrows)(
      "%s fails alone, with what it threw, and disturbs no neighbour",
      (_, made) =>
        onNotes(async (database) => {
          const thrown = made();
          const caught = (call: Promise<unknown>): Promise<readonly unknown[]> =>
            call.then(
              () => [],
              (error: unknown) => [error],
            );
          const hostile = (id: string) =>
            caught(
              database.write("hostile", function* () {
                yield* addNote({ id });
                throw thrown;
              }),
            );
          const settled = await Promise.all([
            caught(database.write(addNote, { id: "a" })),
            hostile("b"),
            caught(database.write(addNote, { id: "c" })),
            hostile("d"),
            caught(
              database.read("hostile", function* () {
                throw thrown;
              }),
            ),
          ]);
          expect(settled.map((errors) => errors.length)).toEqual([0, 1, 0, 1, 1]);
          for (const index of [1, 3, 4]) expect(Object.is(settled[index]?.[0], thrown)).toBe(true);
          expect(await noteHalves(database)).toBe("a1 a2 c1 c2");
        })(),
    );
  });

  describe("misuse", () => {
    test(
      "a generator instead of a generator function is refused, since it could not be run again",
      onNotes(async (database) => {
        const generator = addNote({ id: "a" }) as unknown as () => ReturnType<typeof addNote>;
        expect(await rejection(database.write("once", generator))).toMatchObject({
          code: "OPERATION_INVALID",
        });
      }),
    );

    test(
      "an async body is refused, since a transaction cannot await",
      onNotes(async (database) => {
        const body = (async () => "later") as unknown as () => ReturnType<typeof addNote>;
        expect(await rejection(database.write("async", body))).toMatchObject({
          code: "OPERATION_INVALID",
        });
      }),
    );

    test(
      "yield without its star is refused, since nothing would happen",
      onNotes(async (database) => {
        const error = await rejection(
          database.write("starless", function* () {
            yield addNote({ id: "a" }) as never;
          }),
        );
        expect(error).toMatchObject({ code: "OPERATION_INVALID" });
        expect(error.message).toContain("yield*");
      }),
    );

    test("transaction control inside a body is refused", () => {
      for (const text of ["COMMIT", "begin", "SAVEPOINT x", "PRAGMA user_version = 1"]) {
        const strings = Object.assign([text], {
          raw: [text],
        }) as unknown as TemplateStringsArray;
        expect(() => sql(strings)).toThrow(expect.objectContaining({ code: "OPERATION_INVALID" }));
      }
    });

    test(
      "a write inside a read is refused",
      onNotes(async (database) => {
        const error = await rejection(database.read(addNote, { id: "a" }));
        expect(error).toMatchObject({ code: "WRITE_IN_READ" });
        expect(await noteCount(database)).toBe(0);
        const later = database.read("looks first", function* () {
          yield* row(sql`SELECT id FROM app_note`);
          yield* addNote({ id: "a" });
        });
        expect(await rejection(later)).toMatchObject({ code: "WRITE_IN_READ" });
        await database.write(addNote, { id: "b" });
        expect(await noteCount(database)).toBe(2);
      }),
    );
  });
}

/** As `addNote`, in one statement and with a set form, so that Postgres shares commits too. */
const addNoteTogether = operation("addNoteTogether", {
  isolation: "readCommitted",
  key: (input: { readonly id: string }) => input.id,
  *one({ id }) {
    yield* addNote({ id });
  },
  *many(inputs) {
    const ids = inputs.map((input) => input.id);
    yield* run(sql`
      INSERT INTO app_note (id, half, body)
      SELECT id, half, '' FROM unnest(${ids}::text[]) AS given(id), (VALUES (1), (2)) AS halves(half)`);
    return inputs.map(() => ({ value: undefined }));
  },
});

function* addAndGiveUp(id: string) {
  yield* run(sql`INSERT INTO app_note (id, half, body) VALUES (${id}, 1, NULL)`);
  return yield* rollbackWith(`gave up ${id}`);
}

function* addThenConflict(id: string) {
  yield* run(sql`INSERT INTO app_note (id, half, body) VALUES (${id}, 1, NULL)`);
  yield* row(sql`SELECT 1 AS one`);
  yield* run(sql`INSERT INTO app_note (id, half, body) VALUES ('taken', 1, NULL)`);
}
