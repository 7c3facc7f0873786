import { describe, expect, test } from "vitest";
import type { HoldfastError } from "../../src/model/errors.ts";
import { rows, run, type Tx, sql, type Database } from "../../src/kernel.ts";
import { rejection } from "../conformance/backend.ts";
import { addNote, createNoteTable, noteCount, noteHalves } from "../conformance/notes.ts";
import { unhurried, withFolder } from "./place.ts";

describe("when SQLite ends the transaction by itself", () => {
  /** A trigger of the app's that does what a full disk may do. */
  const withRollbackTrigger = (body: (database: Database) => Promise<void>) => () =>
    withFolder(async (folder) => {
      const first = await folder.open();
      await first.write("tables", createNoteTable);
      await first.close();
      folder.shell([
        "CREATE TRIGGER app_note_bomb BEFORE INSERT ON app_note WHEN NEW.id = 'bomb' BEGIN SELECT RAISE(ROLLBACK, 'boom'); END",
      ]);
      await body(await folder.open({ limits: unhurried }));
    });

  test(
    "the call whose doing it is fails, and the others are stored",
    withRollbackTrigger(async (database) => {
      const { reruns, rollbacks } = database.stats();
      const settled = await Promise.allSettled(
        ["a", "bomb", "b"].map((id) => database.write(addNote, { id })),
      );
      expect(settled).toMatchObject([
        { status: "fulfilled" },
        {
          reason: {
            code: "CONSTRAINT_VIOLATED",
            retryable: false,
            details: { constraint: "boom", operation: "addNote" },
          },
        },
        { status: "fulfilled" },
      ]);
      expect(await noteHalves(database)).toBe("a1 a2 b1 b2");
      expect(database.stats()).toMatchObject({
        reruns: reruns + 1,
        rollbacks: rollbacks + 1,
      });
    }),
  );

  test(
    "an operation that catches the error is never resumed, so nothing commits by itself",
    withRollbackTrigger(async (database) => {
      let resumed = false;
      const error = await rejection(
        database.write("catches", function* (): Tx<string> {
          yield* run(sql`INSERT INTO app_note (id, half, body) VALUES ('first', 1, NULL)`);
          try {
            yield* run(sql`INSERT INTO app_note (id, half, body) VALUES ('bomb', 1, NULL)`);
          } catch {
            resumed = true;
          }
          yield* run(sql`INSERT INTO app_note (id, half, body) VALUES ('second', 1, NULL)`);
          return "done";
        }),
      );
      expect(error).toMatchObject({ code: "CONSTRAINT_VIOLATED" });
      expect(resumed).toBe(false);
      expect(await noteCount(database)).toBe(0);
    }),
  );

  test("a call that is refused for what another did is told so when that is durable, and not before", () =>
    withFolder(async (folder) => {
      const database = await folder.open({ limits: unhurried });
      await database.write("tables", function* () {
        yield* run(sql`CREATE TABLE seat (id TEXT) STRICT`);
        yield* run(sql`
          CREATE TRIGGER seat_once BEFORE INSERT ON seat WHEN EXISTS (SELECT 1 FROM seat WHERE id = NEW.id)
          BEGIN SELECT RAISE(ROLLBACK, 'taken'); END`);
      });
      const said: unknown[] = [];
      const take = (who: string): Promise<unknown> =>
        database
          .write("take", () => run(sql`INSERT INTO seat VALUES ('7')`))
          .then(
            () => said.push(`${who} has it`),
            async ({ code }: HoldfastError) => {
              const taken = await database.read("taken", () => rows(sql`SELECT id FROM seat`));
              said.push(`${who}: ${code}`, taken);
            },
          );
      await Promise.all([take("first"), take("second")]);
      expect(said).toEqual(["first has it", "second: CONSTRAINT_VIOLATED", [{ id: "7" }]]);
    }));
});
