import { describe, expect, test } from "vitest";
import type { Database } from "../../../src/kernel.ts";
import { rejection, withPlace } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { addNote, createNoteTable, noteCount, noteHalves } from "../notes.ts";

export function closeSuite(backend: Backend): void {
  describe("closing", () => {
    test("[E84] later calls are refused, and closing again is fine", () =>
      withPlace(backend, async (place) => {
        const database = await place.open();
        await database.write("tables", createNoteTable);
        await database.close();
        await database.close();
        const closed = { code: "DATABASE_CLOSED" };
        expect(await rejection(database.write(addNote, { id: "a" }))).toMatchObject(closed);
        expect(await rejection(noteCount(database))).toMatchObject(closed);
        expect(await rejection(database.writable())).toMatchObject(closed);
        expect(() => database.subscribe(() => undefined)).toThrow(expect.objectContaining(closed));
        expect(() => database.keepAlive()).toThrow(expect.objectContaining(closed));
      }));

    test("happens by itself at the end of `await using`", () =>
      withPlace(backend, async (place) => {
        let call: Promise<string> | undefined;
        let database: Database;
        {
          // Lowered by the test runner: Node before 24 cannot parse it.
          await using opened = await place.open();
          database = opened;
          await database.write("tables", createNoteTable);
          call = database.write(addNote, { id: "a" });
        }
        expect(await call).toBe("a");
        expect(await rejection(noteCount(database))).toMatchObject({
          code: "DATABASE_CLOSED",
        });
      }));

    test("tells subscribers once, when calls are refused already", () =>
      withPlace(backend, async (place) => {
        const database = await place.open();
        const refused: Promise<Error>[] = [];
        database.subscribe(({ kind }) => {
          if (kind === "closing") refused.push(rejection(noteCount(database)));
        });
        await Promise.all([database.close(), database.close()]);
        expect(await Promise.all(refused)).toEqual([
          expect.objectContaining({ code: "DATABASE_CLOSED" }),
        ]);
      }));

    test("finishes the calls that are queued", () =>
      withPlace(backend, async (place) => {
        const database = await place.open();
        await database.write("tables", createNoteTable);
        const calls = Array.from({ length: 600 }, (_, index) =>
          database.write(addNote, { id: `n${index}` }),
        );
        await database.close();
        expect(
          (await Promise.allSettled(calls)).filter((result) => result.status === "rejected"),
        ).toEqual([]);
      }));

    if (backend.survives) {
      test("[E84] what was acknowledged is there after reopening, twice in sequence", () =>
        withPlace(backend, async (place) => {
          const first = await place.open();
          await first.write("tables", createNoteTable);
          await first.write(addNote, { id: "a" });
          await first.close();
          const second = await place.open();
          await second.write(addNote, { id: "b" });
          await second.close();
          expect(await noteHalves(await place.open())).toBe("a1 a2 b1 b2");
        }));

      test("with no time to drain it rejects what was not taken, and those calls left no trace", () =>
        withPlace(backend, async (place) => {
          const database = await place.open();
          await database.write("tables", createNoteTable);
          const calls = Array.from({ length: 3_000 }, (_, index) =>
            database.write(addNote, { id: `n${index}` }),
          );
          const settled = Promise.allSettled(calls);
          await database.close({ timeout: 0 });
          const rejected = (await settled).filter((result) => result.status === "rejected");
          for (const result of rejected)
            expect(result.reason).toMatchObject({ code: "DATABASE_CLOSED" });
          expect(rejected.length).toBeGreaterThan(0);
          expect(await noteCount(await place.open())).toBe(2 * (3_000 - rejected.length));
        }));
    }
  });
}
