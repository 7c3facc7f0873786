import { describe, expect, test } from "vitest";
import { operation, row, rows, run, type Operation, type Tx, sql } from "../../src/kernel.ts";
import { executions } from "../../src/executions.ts";
import { queue, leases, sessions } from "../../src/sessions.ts";
import { rejection } from "../conformance/backend.ts";
import { byAnn } from "../conformance/execution/fixture.ts";
import { addNote, addNoteAndThrow, createNoteTable } from "../conformance/notes.ts";
import { withFolder } from "./place.ts";
import type { Folder } from "./place.ts";

/** Takes a note that nobody wrote, and answers with the ids it saw on the way. */
const claim: Operation<undefined, readonly string[]> = operation("claim", {
  key: () => "worker",
  *one(): Tx<readonly string[]> {
    const seen = yield* rows<{ id: string }>(sql`SELECT DISTINCT id FROM app_note ORDER BY id`);
    yield* run(sql`UPDATE app_note SET body = 'taken' WHERE id = 'nobody'`);
    yield* row(sql`DELETE FROM app_note WHERE id = 'nobody' RETURNING id`);
    return seen.map(({ id }) => id);
  },
});

/** A commit of somebody who does not flush. */
function commitElsewhere(folder: Folder, id: string): void {
  folder.shell([
    "PRAGMA synchronous = NORMAL",
    `INSERT INTO app_note (id, half, body) VALUES ('${id}', 1, NULL)`,
  ]);
}

describe("a write that changed nothing", () => {
  test("[R18] needs no flush, however often it is made; one that changed a row does", () =>
    withFolder(async (folder) => {
      const database = await folder.open();
      await database.write("tables", createNoteTable);
      await database.write(addNote, { id: "a" });
      const { flushes, commits } = database.stats();
      for (let round = 0; round < 100; round += 1)
        expect(await database.write(claim, undefined)).toEqual(["a"]);
      await rejection(database.write(addNoteAndThrow, { id: "b" }));
      expect(database.stats().flushes - flushes).toBeLessThanOrEqual(1);
      expect(database.stats().commits - commits).toBeGreaterThan(100);
      for (let round = 1; round <= 10; round += 1) {
        const before = database.stats().flushes;
        await database.write(addNote, { id: `n${round}` });
        await database.write(claim, undefined);
        expect(database.stats().flushes - before).toBe(1);
      }
    }));

  test("[R18] is not one whose triggers changed something that it does not count", () =>
    withFolder(async (folder) => {
      const database = await folder.open();
      await database.write("tables", createNoteTable);
      await database.write("view", function* () {
        yield* run(sql`CREATE VIEW app_view AS SELECT id, body FROM app_note`);
        yield* run(sql`
          CREATE TRIGGER app_kept INSTEAD OF UPDATE ON app_view BEGIN
            UPDATE app_note SET body = new.body WHERE id = old.id; END`);
      });
      await database.write(addNote, { id: "a" });
      const change = (body: string) =>
        database.write("change", () => run(sql`UPDATE app_view SET body = ${body} WHERE id = 'a'`));
      for (let round = 1; round <= 5; round += 1) {
        const { flushes } = database.stats();
        expect(await change(`kept ${round}`)).toBe(0);
        expect(database.stats().flushes - flushes).toBe(1);
        await database.write(claim, undefined);
        await database.write(claim, undefined);
        expect(database.stats().flushes - flushes).toBe(1);
      }
    }));

  test("[R18] is what most claims of idle workers are", () =>
    withFolder(async (folder) => {
      const database = await folder.open();
      const log = executions(database);
      await sessions(database).create("chat");
      const claimant = { owner: "host", incarnation: "1" };
      const taken = await leases(database).acquire("chat", claimant);
      const lease = taken.kind === "acquired" ? taken.lease : undefined;
      if (lease === undefined) throw new Error("The lease was not free.");
      const { flushes } = database.stats();
      for (let round = 0; round < 100; round += 1) {
        await log.lockPending({ ...byAnn, functions: ["f"], limit: 10 });
        await queue(database).claimTurn(lease, { boundary: "idle" });
        await log.expireTimers();
      }
      expect(database.stats().flushes - flushes).toBe(0);
    }));

  test.each(["inline", "thread"] as const)(
    "[R18] waits for a flush when its answer rests on what another process has not flushed (%s)",
    (place) =>
      withFolder(async (folder) => {
        const faults: { failAfter?: number } = {};
        const database = await folder.open({}, { flush: { place, faults } });
        await database.write("tables", createNoteTable);
        await database.write(addNote, { id: "a" });
        const before = database.stats().flushes;
        commitElsewhere(folder, "b");
        expect(await database.write(claim, undefined)).toEqual(["a", "b"]);
        expect(database.stats().flushes - before).toBe(1);
        expect(await database.write(claim, undefined)).toEqual(["a", "b"]);
        expect(database.stats().flushes - before).toBe(1);
      }),
  );

  test("[R18] is not answered when that flush fails, and neither is any after it", () =>
    withFolder(async (folder) => {
      const faults: { failAfter?: number } = {};
      const flush = { place: "inline", faults } as const;
      const database = await folder.open({}, { flush });
      await database.write("tables", createNoteTable);
      await database.write(addNote, { id: "a" });
      faults.failAfter = 0;
      // With nothing to flush a failing disk goes unnoticed.
      expect(await database.write(claim, undefined)).toEqual(["a"]);
      commitElsewhere(folder, "b");
      expect(await rejection(database.write(claim, undefined))).toMatchObject({
        code: "OUTCOME_UNKNOWN",
      });
      expect(await rejection(database.write(claim, undefined))).toMatchObject({
        code: "WRITES_STOPPED",
      });
    }));

  test("[R18] is answered after the flush that is under way, and shares it", () =>
    withFolder(async (folder) => {
      const database = await folder.open(
        {},
        { flush: { place: "thread", faults: { delayMs: 30 } } },
      );
      await database.write("tables", createNoteTable);
      const before = database.stats();
      const order: string[] = [];
      const written = database.write(addNote, { id: "a" }).then(() => order.push("written"));
      // Committed, and being flushed.
      while (database.stats().commits === before.commits)
        await new Promise((resolve) => setImmediate(resolve));
      const claimed = database
        .write(claim, undefined)
        .then((seen) => order.push(`saw ${seen.join()}`));
      await Promise.all([written, claimed]);
      expect(order).toEqual(["written", "saw a"]);
      expect(database.stats().flushes - before.flushes).toBe(1);
    }));
});
