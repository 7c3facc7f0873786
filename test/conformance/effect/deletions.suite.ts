import { describe, expect, test } from "vitest";
import { rows, run, sql } from "../../../src/kernel.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { inCommands } from "./commands-fixture.ts";
import type { CommandFixture } from "./commands-fixture.ts";
import { createSession } from "../lease/leased-sessions.ts";

const operation = { kind: "operation", id: "o1" };

/** The generation of the session of an id that lives. */
function livingOf({ database }: CommandFixture, id: string): Promise<readonly object[]> {
  return database.read("living", () =>
    rows(sql`
      SELECT generation FROM holdfast_session WHERE id = ${id} AND deleted_at IS NULL`),
  );
}

/** Deletes by a process that dies before it can record that it did. */
async function deletedUnrecorded({ commands, faults }: CommandFixture, id: string): Promise<void> {
  faults.diesBefore = "finishEffect";
  expect(await rejection(commands.deleteSession(operation, id))).toMatchObject({
    message: "The process died.",
  });
  faults.diesBefore = undefined;
}

export function effectDeletionsSuite(backend: Backend): void {
  const fixture = inCommands(backend);
  describe("deleting a session as an effect", () => {
    test(
      "whoever goes on with it deletes the one that was meant, not the next of its id",
      fixture(async (at) => {
        const { commands, database } = at;
        await deletedUnrecorded(at, "other");
        expect(await livingOf(at, "other")).toEqual([]);
        await createSession(database, "other", 2);
        const report = await commands.deleteSession(operation, "other");
        expect(report).toMatchObject({ existed: true, generation: 1 });
        expect(await livingOf(at, "other")).toEqual([{ generation: 2 }]);
        expect(await commands.deleteSession(operation, "other")).toEqual(report);
        // Another call means the one that lives now.
        expect(await commands.deleteSession(operation, "other", { call: "2" })).toMatchObject({
          existed: true,
          generation: 2,
        });
        expect(await livingOf(at, "other")).toEqual([]);
      }),
    );

    test(
      "that there never was deletes nothing, also when one is created before somebody goes on with it",
      fixture(async (at) => {
        const { commands, database } = at;
        await deletedUnrecorded(at, "ghost");
        await createSession(database, "ghost");
        expect(await commands.deleteSession(operation, "ghost")).toMatchObject({
          existed: false,
          rows: 0,
          processes: { revoked: 0, orphaned: [], hasMore: false },
        });
        expect(await livingOf(at, "ghost")).toEqual([{ generation: 1 }]);
      }),
    );

    test(
      "that was deleted before, or by its generation, tells of that one",
      fixture(async (at) => {
        const { commands, database } = at;
        await createSession(database, "other", 2);
        const old = { id: "other", generation: 1 };
        expect(await commands.deleteSession(operation, old)).toMatchObject({
          existed: true,
          generation: 1,
        });
        expect(await livingOf(at, "other")).toEqual([{ generation: 2 }]);
        const [first, second] = [{ call: "2" }, { call: "3" }];
        for (const call of [first, second])
          expect(await commands.deleteSession(operation, "other", call)).toMatchObject({
            existed: true,
            generation: 2,
          });
      }),
    );

    test(
      "records as many processes as fit, and says so",
      fixture(async (at) => {
        const { commands, database } = at;
        const idsOf = (name: string): readonly string[] =>
          Array.from({ length: 10_000 }, (_, n) => `${name}${"x".repeat(120)}${10_000 + n}`);
        const [orphaned, preserved] = [idsOf("o"), idsOf("p")];
        const known = {
          revoked: 20_000,
          wakes: 0,
          orphaned,
          preserved,
          hasMore: false,
        };
        await database.write("known", () =>
          run(sql`
            INSERT INTO holdfast_process_session_end (session, report)
            SELECT key, ${JSON.stringify(known)} FROM holdfast_session WHERE id = 'other'`),
        );
        const report = await commands.deleteSession(operation, "other");
        expect(report.processes).toEqual({
          revoked: 20_000,
          wakes: 0,
          orphaned: orphaned.slice(0, 500),
          preserved: preserved.slice(0, 500),
          hasMore: true,
        });
        expect(await commands.deleteSession(operation, "other")).toEqual(report);
      }),
    );
  });
}
