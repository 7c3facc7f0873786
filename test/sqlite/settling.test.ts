import { describe, expect, test } from "vitest";
import { row, sql } from "../../src/kernel.ts";
import { openSqlite } from "../../src/sqlite.ts";
import { rejection } from "../conformance/backend.ts";
import {
  addNote,
  addNoteAndThrow,
  createNoteTable,
  noteCount,
  noteHalves,
} from "../conformance/notes.ts";
import { Child } from "../crash/child.ts";
import { whileLocked } from "../crash/locked.ts";
import { driverName, withFolder } from "./place.ts";

/** Every promise settles, whatever goes wrong around it. */
describe("a write settles", () => {
  test("after a refused timeout whose signal aborts later", () =>
    withFolder(async (folder) => {
      const database = await folder.open();
      await database.write("tables", createNoteTable);
      const abort = new AbortController();
      const options = { signal: abort.signal, timeout: "soon" as "1s" };
      expect(await rejection(database.write(addNote, { id: "a" }, options))).toMatchObject({
        code: "DURATION_INVALID",
      });
      abort.abort();
      await database.write(addNote, { id: "b" });
      expect(await noteHalves(database)).toBe("b1 b2");
      expect(database.stats().queueDepth).toBe(0);
    }));

  test("when no transaction can begin, and the damage stops the others", () =>
    withFolder(async (folder) => {
      const setup = await folder.open();
      await setup.write("tables", createNoteTable);
      await setup.close();
      const database = await folder.open();
      // Another process overwrites the file: its first page is no longer one.
      const vandal = new Child("overwrite-header.ts", [folder.file()]);
      expect(await vandal.ended).toBe(0);
      const error = await rejection(database.write(addNote, { id: "a" }));
      expect(error).toMatchObject({ code: "DATABASE_DAMAGED" });
      expect(await rejection(database.write(addNote, { id: "b" }))).toMatchObject({
        code: "DATABASE_DAMAGED",
      });
      await database.close();
    }));

  test("when it is given up after its batch had to be run again", () =>
    withFolder(async (folder) => {
      const database = await folder.open();
      await database.write("tables", createNoteTable);
      const abort = new AbortController();
      const kept = database.write(addNote, { id: "kept" }, { signal: abort.signal });
      const failed = rejection(database.write(addNoteAndThrow, { id: "f" }));
      await Promise.all([kept, failed]);
      abort.abort();
      expect(await noteHalves(database)).toBe("kept1 kept2");
    }));
});

describe("a read settles", () => {
  test("when the database is closed right after it began", () =>
    withFolder(async (folder) => {
      const writer = await folder.open();
      await writer.write("tables", createNoteTable);
      for (const options of [{}, { readOnly: true }]) {
        const database = await folder.open(options);
        await writer.write("more", () =>
          row(
            sql`INSERT INTO app_note (id, half) VALUES (${String(Math.random())}, 1) RETURNING id`,
          ),
        );
        const read = noteCount(database);
        await database.close();
        expect(await read).toBeGreaterThan(0);
      }
    }));
});

describe("close", () => {
  test("refuses a timeout that is no duration, as a rejection", async () => {
    const database = await openSqlite(":memory:", { driver: driverName });
    const closing = database.close({ timeout: "x" as "1s" });
    expect(await rejection(closing)).toMatchObject({
      code: "DURATION_INVALID",
    });
    await database.close();
  });

  test("ends while a lock is waited for, and the waiting call is told", () =>
    withFolder(async (folder) => {
      const database = await folder.open();
      await database.write("tables", createNoteTable);
      await whileLocked(folder, "write", async () => {
        const waiting = rejection(database.write(addNote, { id: "a" }));
        await database.close({ timeout: 20 });
        expect(await waiting).toMatchObject({ code: "DATABASE_CLOSED" });
      });
    }));

  test("ends after a flush failed", () =>
    withFolder(async (folder) => {
      const database = await folder.open(
        {},
        { flush: { place: "thread", faults: { failAfter: 2 } } },
      );
      await database.write("tables", createNoteTable);
      expect(await rejection(database.write(addNote, { id: "a" }))).toMatchObject({
        code: "OUTCOME_UNKNOWN",
      });
      await database.close();
      expect(await noteCount(await folder.open())).toBe(2);
    }));
});

describe("an open", () => {
  test("is not held up by a reader that never ends", () =>
    withFolder(async (folder) => {
      const first = await folder.open();
      await first.write("tables", createNoteTable);
      await whileLocked(folder, "read", async () => {
        await first.write(addNote, { id: "a" });
        const second = await folder.open({ busyTimeout: "5s" });
        await second.write(addNote, { id: "b" });
        expect(await noteHalves(second)).toBe("a1 a2 b1 b2");
      });
    }));

  test("leaves a file alone whose schema it refuses", () =>
    withFolder(async (folder) => {
      folder.shell(["CREATE TABLE holdfast_stray (id INTEGER)"]);
      expect(await rejection(folder.open())).toMatchObject({
        code: "SCHEMA_ORPHANED",
      });
      expect(folder.shell(["PRAGMA journal_mode"])).toEqual([{ journal_mode: "delete" }]);
    }));

  test("in memory cannot be read-only", async () => {
    expect(await rejection(openSqlite(":memory:", { readOnly: true }))).toMatchObject({
      code: "OPTION_INVALID",
      details: { option: "readOnly" },
    });
  });
});
