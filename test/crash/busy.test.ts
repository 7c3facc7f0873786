import { describe, expect, test } from "vitest";
import { rejection } from "../conformance/backend.ts";
import {
  addNote,
  createNoteTable,
  noteCount,
  noteHalves,
} from "../conformance/notes.ts";
import { withFolder } from "../sqlite/place.ts";
import { Child } from "./child.ts";

describe("a lock held by another process", () => {
  test("is waited for without blocking the event loop, and the call succeeds", () =>
    withFolder(async (folder) => {
      const database = await folder.open();
      await database.write("tables", createNoteTable);
      const holder = new Child("lock-holder.ts", [folder.file(), "write", 400]);
      await holder.reported(1);
      let turns = 0;
      const turning = setInterval(() => (turns += 1), 1);
      await database.write(addNote, { id: "a" });
      clearInterval(turning);
      expect(turns).toBeGreaterThan(0);
      expect(database.stats().busyRetries).toBeGreaterThan(0);
      expect(await holder.ended).toBe(0);
      expect(await noteHalves(database)).toBe("a1 a2");
    }));

  test("past the budget is DATABASE_BUSY, reads go on, and the call can be repeated", () =>
    withFolder(async (folder) => {
      const database = await folder.open({ busyTimeout: "100ms" });
      await database.write("tables", createNoteTable);
      const holder = new Child("lock-holder.ts", [
        folder.file(),
        "write",
        60_000,
      ]);
      await holder.reported(1);
      const error = await rejection(database.write(addNote, { id: "a" }));
      expect(error).toMatchObject({
        code: "DATABASE_BUSY",
        retryable: true,
        details: { budgetMs: 100 },
      });
      expect(await noteCount(database)).toBe(0);
      holder.kill();
      await holder.ended;
      await database.write(addNote, { id: "a" });
      expect(await noteHalves(database)).toBe("a1 a2");
    }));

  test("past the budget also fails an open, which leaves nothing behind", () =>
    withFolder(async (folder) => {
      await (await folder.open()).close();
      const holder = new Child("lock-holder.ts", [
        folder.file(),
        "write",
        60_000,
      ]);
      await holder.reported(1);
      expect(await rejection(folder.open({ busyTimeout: 50 }))).toMatchObject({
        code: "DATABASE_BUSY",
      });
      holder.kill();
      await holder.ended;
      await folder.open();
    }));

  test("can be given up by a signal or a timeout while it is waited for", () =>
    withFolder(async (folder) => {
      const database = await folder.open();
      await database.write("tables", createNoteTable);
      const holder = new Child("lock-holder.ts", [
        folder.file(),
        "write",
        60_000,
      ]);
      await holder.reported(1);
      const abort = new AbortController();
      const aborted = rejection(
        database.write(addNote, { id: "a" }, { signal: abort.signal }),
      );
      const late = rejection(
        database.write(addNote, { id: "b" }, { timeout: 20 }),
      );
      expect(await late).toMatchObject({
        code: "DEADLINE_EXCEEDED",
        retryable: true,
      });
      abort.abort();
      expect(await aborted).toMatchObject({ code: "ABORTED" });
      holder.kill();
      await holder.ended;
      await database.write(addNote, { id: "c" });
      expect(await noteHalves(database)).toBe("c1 c2");
    }));

  test("a reader elsewhere that never ends delays no writer", () =>
    withFolder(async (folder) => {
      const database = await folder.open({ limits: { walBytes: 65_536 } });
      await database.write("tables", createNoteTable);
      const holder = new Child("lock-holder.ts", [
        folder.file(),
        "read",
        60_000,
      ]);
      await holder.reported(1);
      const body = "x".repeat(500);
      for (let round = 0; round < 4; round += 1)
        await Promise.all(
          Array.from({ length: 300 }, (_, index) =>
            database.write(addNote, { id: `${round}-${index}`, body }),
          ),
        );
      expect(await noteCount(database)).toBe(2_400);
      expect(database.stats().checkpoints.failures).toBeGreaterThan(0);
      holder.kill();
      await holder.ended;
    }));
});
