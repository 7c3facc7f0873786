import { describe, expect, test } from "vitest";
import type { Database } from "../../../src/kernel.ts";
import { afterwards, operation, rollbackWith } from "../../../src/sql/operation.ts";
import { rejection, withDatabase } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { addNote, createNoteTable, noteCount, noteHalves } from "../notes.ts";

export function afterwardsSuite(backend: Backend): void {
  const onNotes = (body: (database: Database) => Promise<void>) => () =>
    withDatabase(backend, async (database) => {
      await database.write("tables", createNoteTable);
      await body(database);
    });

  const recorded = operation("recorded", {
    key: () => "a",
    *one({ id }: { readonly id: string }) {
      yield* addNote({ id });
    },
  });

  /** Writes a note and asks to be told of the end, by the same key as its rivals. */
  const telling = (told: string[], record: () => Promise<unknown>) =>
    operation("telling", {
      key: () => "a",
      *one(input: "commit" | "throw" | "rollback") {
        yield* afterwards({
          durable: () => void told.push("durable"),
          refused: async () => {
            await record();
            told.push("refused");
          },
        });
        yield* addNote({ id: "a" });
        if (input === "throw") throw new Error("refused a");
        return input === "rollback" ? yield* rollbackWith(input) : input;
      },
    });

  describe("what is done afterwards", () => {
    test(
      "is done once the call is durable, before its caller is told",
      onNotes(async (database) => {
        const told: string[] = [];
        await database
          .write(
            telling(told, () => Promise.resolve()),
            "commit",
          )
          .then(() => told.push("answered"));
        expect(told).toEqual(["durable", "answered"]);
      }),
    );

    test.each(["throw", "rollback"] as const)(
      "may write when the call has rolled back (%s), and its caller is told after that",
      (how) =>
        onNotes(async (database) => {
          const told: string[] = [];
          const record = (): Promise<unknown> => database.write(recorded, { id: "recorded" });
          const answer = database.write(telling(told, record), how);
          if (how === "throw") expect((await rejection(answer)).message).toBe("refused a");
          else expect(await answer).toBe("rollback");
          told.push("answered");
          expect(told).toEqual(["refused", "answered"]);
          expect(await noteHalves(database)).toBe("recorded1 recorded2");
        })(),
    );

    test(
      "is done by whoever composed it, and not by neighbours",
      onNotes(async (database) => {
        const told: string[] = [];
        const part = telling(told, () => Promise.resolve());
        await Promise.all([
          database.write("composed", function* () {
            yield* part("commit");
            yield* addNote({ id: "c" });
          }),
          database.write(addNote, { id: "b" }),
        ]);
        expect(told).toEqual(["durable"]);
        await rejection(
          database.write("composed", function* () {
            yield* part("commit");
            throw new Error("on second thoughts");
          }),
        );
        expect(told).toEqual(["durable", "refused"]);
        expect(await noteCount(database)).toBe(6);
      }),
    );

    test(
      "hides neither an answer nor an error when it fails itself",
      onNotes(async (database) => {
        const failing = operation("failing", {
          key: () => "a",
          *one(isGood: boolean) {
            yield* afterwards({
              durable() {
                throw new Error("a listener's bug");
              },
              refused: () => Promise.reject(new Error("cannot be recorded")),
            });
            if (!isGood) throw new Error("refused");
            yield* addNote({ id: "a" });
            return "done";
          },
        });
        expect(await database.write(failing, true)).toBe("done");
        const error = await rejection(database.write(failing, false));
        expect(error.message).toBe("refused");
      }),
    );
  });
}
