import { describe, expect, test } from "vitest";
import { operation, rollbackWith, rows, run, sql } from "../../../src/kernel.ts";
import type { ChangeHint, Database, Interest } from "../../../src/sql/database.ts";
import { rejection, withDatabase, withPlace } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { addNote, addNoteAndThrow, createNoteTable, noteCount } from "../notes.ts";

export function changesSuite(backend: Backend): void {
  const onNotes = (body: (database: Database, heard: string[]) => Promise<void>) => () =>
    withDatabase(backend, async (database) => {
      await database.write("tables", createNoteTable);
      const heard: string[] = [];
      database.subscribe((hint) => heard.push(spoken(hint)));
      await body(database, heard);
    });
  const spoken = (hint: ChangeHint): string =>
    hint.kind === "change" ? `${hint.operation} ${hint.key}` : "unknown";
  const known = (heard: readonly string[]): string[] => heard.filter((hint) => hint !== "unknown");

  describe("subscriptions", () => {
    test(
      "hear of a write by operation and aggregate",
      onNotes(async (database, heard) => {
        await database.write(addNote, { id: "a" });
        expect(known(heard)).toEqual(["addNote a"]);
      }),
    );

    test(
      "hear of the operations inside a composition",
      onNotes(async (database, heard) => {
        await database.write("both", function* () {
          yield* addNote({ id: "a" });
          yield* addNote({ id: "b" });
        });
        expect(known(heard)).toEqual(["addNote a", "addNote b"]);
      }),
    );

    test(
      "hear `unknown` of a body without operations, beside whatever shares its transaction",
      onNotes(async (database, heard) => {
        const unnamed = (id: string) =>
          database.write("unnamed", function* () {
            yield* run(sql`INSERT INTO app_note (id, half, body) VALUES (${id}, 1, NULL)`);
          });
        for (const id of ["a", "b", "c"]) await unnamed(id);
        const alone = heard.length;
        await Promise.all([
          database.write(addNote, { id: "d" }),
          unnamed("e"),
          database.write(addNote, { id: "f" }),
        ]);
        // A listener that has just begun may hear it once more.
        expect(alone).toBeGreaterThanOrEqual(3);
        expect(heard.length).toBeGreaterThanOrEqual(alone + 3);
        expect(known(heard).toSorted()).toEqual(["addNote d", "addNote f"]);
      }),
    );

    test(
      "hear nothing of reads, failures and verdicts",
      onNotes(async (database, heard) => {
        await rejection(database.write(addNoteAndThrow, { id: "a" }));
        await database.write("verdict", function* () {
          yield* addNote({ id: "b" });
          return yield* rollbackWith(undefined);
        });
        await noteCount(database);
        expect(known(heard)).toEqual([]);
      }),
    );

    test(
      "hear nothing of a write that changed nothing",
      onNotes(async (database, heard) => {
        await database.write("look", function* () {
          yield* noteIds();
        });
        await database.write(countNotes, { id: "a" });
        expect(known(heard)).toEqual([]);
      }),
    );

    test(
      "hear of one aggregate's changes in the order in which they became durable",
      onNotes(async (database, heard) => {
        for (let index = 0; index < 20; index += 1)
          await database.write(addNote, { id: `n${index}` });
        expect(known(heard)).toEqual(Array.from({ length: 20 }, (_, index) => `addNote n${index}`));
      }),
    );

    test("a change can be read by the time it is heard of", () =>
      withDatabase(backend, async (database) => {
        await database.write("tables", createNoteTable);
        const counted: Promise<number>[] = [];
        database.subscribe((hint) => {
          if (hint.kind === "change") counted.push(noteCount(database));
        });
        await Promise.all(["a", "b", "c"].map((id) => database.write(addNote, { id })));
        const counts = await Promise.all(counted);
        expect(counts).toHaveLength(3);
        counts.forEach((count, index) => expect(count).toBeGreaterThanOrEqual(2 * (index + 1)));
      }));

    test(
      "stop when told to",
      onNotes(async (database, heard) => {
        const others: string[] = [];
        const stop = database.subscribe((hint) => others.push(spoken(hint)));
        await database.write(addNote, { id: "a" });
        stop();
        await database.write(addNote, { id: "b" });
        expect(known(others)).toEqual(["addNote a"]);
        expect(known(heard)).toEqual(["addNote a", "addNote b"]);
      }),
    );

    test(
      "[R16] hear only of what they are interested in: keys, whole operations, both or nothing",
      onNotes(async (database) => {
        const heard: Record<string, string[]> = {};
        const hear = (name: string, ...interests: readonly Interest[]) => {
          heard[name] = [];
          return database.subscribe((hint) => heard[name]?.push(spoken(hint)), interests);
        };
        hear("a", { operation: "addNote", key: "a" });
        hear("a and b", { operation: "addNote", key: "a" }, { operation: "addNote", key: "b" });
        hear("all notes", { operation: "addNote" });
        hear("another operation", { operation: "addNotes", key: "a" });
        hear("nothing");
        const stop = hear("a, for a while", { operation: "addNote", key: "a" });
        await database.write("both", function* () {
          yield* addNote({ id: "a" });
          yield* addNote({ id: "c" });
        });
        stop();
        stop();
        await database.write(addNote, { id: "b" });
        await database.write("again", function* () {
          yield* run(sql`DELETE FROM app_note WHERE id = 'a'`);
          yield* addNote({ id: "a" });
        });
        const named = Object.entries(heard).map(([name, hints]) => [name, known(hints)]);
        expect(Object.fromEntries(named)).toEqual({
          a: ["addNote a", "addNote a"],
          "a and b": ["addNote a", "addNote b", "addNote a"],
          "all notes": ["addNote a", "addNote c", "addNote b", "addNote a"],
          "another operation": [],
          nothing: [],
          "a, for a while": ["addNote a"],
        });
      }),
    );

    test(
      "[R16] hear whatever is not a change, whatever they are interested in",
      onNotes(async (database) => {
        const kinds: string[] = [];
        database.subscribe(
          ({ kind }) => kinds.push(kind),
          [{ operation: "addNote", key: "never" }],
        );
        await database.write("unnamed", function* () {
          yield* run(sql`INSERT INTO app_note (id, half, body) VALUES ('a', 1, NULL)`);
        });
        expect(kinds.length).toBeGreaterThanOrEqual(1);
        expect(new Set(kinds)).toEqual(new Set(["unknown"]));
        await database.close();
        expect(kinds.at(-1)).toBe("closing");
      }),
    );

    if (backend.survives)
      test("[R16] hear by key of what others on the same database change", () =>
        withPlace(backend, async (place) => {
          const writer = await place.open();
          await writer.write("tables", createNoteTable);
          const reader = await place.open({ isWithoutPoll: true });
          const heard: string[] = [];
          let isHeard = (): void => undefined;
          const untilHeard = (hint: string): Promise<void> =>
            new Promise((resolve) => {
              isHeard = () => heard.includes(hint) && resolve();
              isHeard();
            });
          reader.subscribe(
            (hint) => {
              heard.push(spoken(hint));
              isHeard();
            },
            [
              { operation: "addNote", key: "b" },
              { operation: "addNote", key: "end" },
            ],
          );
          // Said by each side once it knows that the other is there.
          await untilHeard("unknown");
          for (const id of ["a", "b", "c", "end"]) await writer.write(addNote, { id });
          await untilHeard("addNote end");
          expect(known(heard)).toEqual(["addNote b", "addNote end"]);
        }));

    test.each<[string, unknown[]]>([
      ["no listener", []],
      ["an object for a listener", [{ operation: "addNote" }]],
      ["an interest that is no list", [() => undefined, { operation: "a" }]],
      ["no interests but null", [() => undefined, null]],
      ["an operation for an interest", [() => undefined, ["addNote"]]],
      ["an interest without operation", [() => undefined, [{ key: "a" }]]],
      ["a key that is no text", [() => undefined, [{ operation: "addNote", key: 7 }]]],
      ["a misspelt property", [() => undefined, [{ operation: "addNote", keys: ["a"] }]]],
    ])("refuse %s", (_, given) =>
      withDatabase(backend, async (database) => {
        const subscribe = database.subscribe.bind(database) as (...any: unknown[]) => unknown;
        expect(() => subscribe(...given)).toThrow(
          expect.objectContaining({ code: "OPTION_INVALID" }),
        );
      }),
    );
  });
}

function* noteIds() {
  return yield* rows<{ id: string }>(sql`SELECT id FROM app_note`);
}

const countNotes = operation("countNotes", {
  key: (input: { readonly id: string }) => input.id,
  *one() {
    return (yield* noteIds()).length;
  },
});
