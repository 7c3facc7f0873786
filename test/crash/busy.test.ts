import { describe, expect, test } from "vitest";
import { rejection } from "../conformance/backend.ts";
import { until } from "../conformance/runtime/waiting.ts";
import { addNote, createNoteTable, noteCount, noteHalves } from "../conformance/notes.ts";
import { withFolder } from "../sqlite/place.ts";
import { Child } from "./child.ts";
import { mayMount, underSmallDisk } from "./small-disk.ts";
import { whileLocked } from "./locked.ts";

describe("a lock held by another process", () => {
  test("is waited for without blocking the event loop, and the call succeeds", () =>
    withFolder(async (folder) => {
      const database = await folder.open();
      await database.write("tables", createNoteTable);
      const holder = new Child("lock-holder.ts", [folder.file(), "write"]);
      await holder.reported(1);
      const written = database.write(addNote, { id: "a" });
      // The holder lets go when this event loop tells it to: a write that
      // blocked the loop would wait for it in vain, and be given up.
      await until(() => database.stats().busyRetries > 0);
      holder.tell("let go");
      await written;
      const { lockWaitMs } = database.stats();
      expect(lockWaitMs.count).toBe(1);
      expect(lockWaitMs.max).toBeGreaterThan(0);
      expect(await holder.ended).toBe(0);
      expect(await noteHalves(database)).toBe("a1 a2");
    }));

  test("past the budget is DATABASE_BUSY, reads go on, and the call can be repeated", () =>
    withFolder(async (folder) => {
      const database = await folder.open({ busyTimeout: "100ms" });
      await database.write("tables", createNoteTable);
      await whileLocked(folder, "write", async () => {
        const error = await rejection(database.write(addNote, { id: "a" }));
        expect(error).toMatchObject({
          code: "DATABASE_BUSY",
          retryable: true,
          details: { budgetMs: 100 },
        });
        expect(await noteCount(database)).toBe(0);
      });
      await database.write(addNote, { id: "a" });
      expect(await noteHalves(database)).toBe("a1 a2");
    }));

  test("past the budget also fails the open of a file that has yet to be set up, which leaves nothing behind", () =>
    withFolder(async (folder) => {
      folder.shell(["CREATE TABLE app_user (id INTEGER)"]);
      await whileLocked(folder, "write", async () => {
        expect(await rejection(folder.open({ busyTimeout: 50 }))).toMatchObject({
          code: "DATABASE_BUSY",
        });
      });
      expect(folder.shell(["SELECT name FROM sqlite_schema"])).toEqual([{ name: "app_user" }]);
      await folder.open();
    }));

  test("does not hold up the open of a file that is set up; the first write waits for it, and can be repeated", () =>
    withFolder(async (folder) => {
      const setup = await folder.open();
      await setup.write("tables", createNoteTable);
      await setup.close();
      await whileLocked(folder, "write", async () => {
        const database = await folder.open({ busyTimeout: 50 });
        expect(await noteCount(database)).toBe(0);
        expect(await rejection(database.write(addNote, { id: "a" }))).toMatchObject({
          code: "DATABASE_BUSY",
          retryable: true,
        });
        await database.close();
      });
      const database = await folder.open();
      await database.write(addNote, { id: "a" });
      expect(await noteHalves(database)).toBe("a1 a2");
    }));

  test("lets the first write that waits for it go on once it is free", () =>
    withFolder(async (folder) => {
      const setup = await folder.open();
      await setup.write("tables", createNoteTable);
      await setup.close();
      const holder = new Child("lock-holder.ts", [folder.file(), "write"]);
      await holder.reported(1);
      const database = await folder.open();
      const written = database.write(addNote, { id: "a" });
      // Nobody counts how often it is tried; that another one waits behind it
      // in vain tells that it waits.
      expect(await rejection(database.write(addNote, { id: "b" }, { timeout: 100 }))).toMatchObject(
        { code: "DEADLINE_EXCEEDED" },
      );
      holder.tell("let go");
      await written;
      expect(await holder.ended).toBe(0);
      expect(await noteHalves(database)).toBe("a1 a2");
    }));

  test("can be given up by a signal or a timeout while it is waited for", () =>
    withFolder(async (folder) => {
      const database = await folder.open();
      await database.write("tables", createNoteTable);
      await whileLocked(folder, "write", async () => {
        const abort = new AbortController();
        const aborted = rejection(database.write(addNote, { id: "a" }, { signal: abort.signal }));
        const late = rejection(database.write(addNote, { id: "b" }, { timeout: 20 }));
        expect(await late).toMatchObject({
          code: "DEADLINE_EXCEEDED",
          retryable: true,
        });
        abort.abort();
        expect(await aborted).toMatchObject({ code: "ABORTED" });
      });
      await database.write(addNote, { id: "c" });
      expect(await noteHalves(database)).toBe("c1 c2");
    }));

  test("a reader elsewhere that never ends delays no writer", () =>
    withFolder(async (folder) => {
      const database = await folder.open({ limits: { walBytes: 65_536 } });
      await database.write("tables", createNoteTable);
      await whileLocked(folder, "read", async () => {
        const body = "x".repeat(500);
        const failures = (): number => database.stats().checkpoints.failures;
        let notes = 0;
        // The log is restarted by a thread of its own, which the reader is in
        // the way of; it may be slow to try.
        for (let round = 0; round < 4 || failures() === 0; round += 1) {
          await Promise.all(
            Array.from({ length: 300 }, (_, index) =>
              database.write(addNote, { id: `${round}-${index}`, body }),
            ),
          );
          notes += 300;
        }
        expect(await noteCount(database)).toBe(2 * notes);
      });
    }));
});

describe("a disk of two megabytes", () => {
  test.runIf(mayMount())(
    "fills up under log and checkpoints: calls are refused as retryable, reads go on, and so do writes after there is room",
    () =>
      withFolder(async (folder) => {
        const small = folder.file("small");
        const child = new Child("full-disk.ts", [small], underSmallDisk(small));
        expect(await child.ended).toBe(0);
        expect(child.errors).toBe("");
        expect(JSON.parse(child.lines.at(-1) ?? "{}")).toEqual({
          code: "DISK_FULL",
          retryable: true,
          readable: true,
          nothingHalf: true,
          reopened: true,
          ok: true,
        });
      }),
  );
});
