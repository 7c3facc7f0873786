import { closeSync, openSync, statSync, truncateSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { findHole, noteLog, watchedSizes } from "../../src/backends/sqlite/log/cut-files.js";
import { loadDriver } from "../../src/backends/sqlite/drivers/drivers.ts";
import type { RawConnection } from "../../src/backends/sqlite/drivers/drivers.ts";
import { run, sql } from "../../src/kernel.ts";
import type { SqliteDatabase } from "../../src/sqlite.ts";
import { rejection } from "../conformance/backend.ts";
import { addNote, createNoteTable, noteCount } from "../conformance/notes.ts";
import { driverName, unhurried, withFolder } from "./place.ts";
import type { Folder } from "./place.ts";

const body = "x".repeat(1_000);

async function filled(folder: Folder, count: number): Promise<SqliteDatabase> {
  const database = await folder.open({ limits: unhurried });
  await database.write("tables", createNoteTable);
  // So that no frames of an earlier generation lie behind those that count.
  folder.shell(["PRAGMA wal_checkpoint(TRUNCATE)"]);
  for (let index = 0; index < count; index += 1)
    await database.write(addNote, { id: `before-${index}`, body });
  return database;
}

/** Nothing is acknowledged any more, and everybody is told why. */
async function expectStopped(database: SqliteDatabase, reason: string): Promise<void> {
  const settled = await Promise.allSettled(
    ["a", "b"].map((id) => database.write(addNote, { id, body })),
  );
  for (const result of settled)
    expect(result).toMatchObject({
      status: "rejected",
      reason: { code: "OUTCOME_UNKNOWN", retryable: true },
    });
  const stopped = await rejection(database.write(addNote, { id: "c" }));
  expect(stopped).toMatchObject({ code: "WRITES_STOPPED" });
  expect((stopped.cause as Error).message).toContain(reason);
}

describe("a log that is cut off while it is open", () => {
  test.each<[string, (bytes: number) => number]>([
    ["in the middle", (bytes) => Math.floor(bytes / 2)],
    ["by its last frame", (bytes) => bytes - 4_120],
    ["whole", () => 0],
  ])("stops writes when it is cut off %s, and leaves a database that opens", (_, left) =>
    withFolder(async (folder) => {
      const database = await filled(folder, 20);
      const log = `${folder.file()}-wal`;
      truncateSync(log, left(statSync(log).size));
      await expectStopped(database, "log was cut off");
      await database.close();
      // What SQLite would have made of it: "file is not a database".
      expect(folder.shell(["PRAGMA integrity_check"])).toEqual([{ integrity_check: "ok" }]);
      await (await folder.open()).close();
    }),
  );

  test.each<[string, number]>([
    ["between frames", 12],
    ["inside a frame", 12.5],
    ["inside the head of a frame", 12.002],
  ])("ends before the hole when it was cut %s", (_, frames) =>
    withFolder(async (folder) => {
      const database = await filled(folder, 20);
      const log = `${folder.file()}-wal`;
      const fd = openSync(log, "r");
      try {
        expect(findHole(fd)).toBeUndefined();
        truncateSync(log, 32 + Math.floor(frames * 4_120));
        expect(findHole(fd)).toBeUndefined();
        await expectStopped(database, "log was cut off");
        expect(findHole(fd)).toBe(32 + 12 * 4_120);
        await database.close();
      } finally {
        closeSync(fd);
      }
    }),
  );

  test("is not confused with one that others empty or restart", () =>
    withFolder(async (folder) => {
      const database = await filled(folder, 20);
      for (const mode of ["TRUNCATE", "RESTART", "PASSIVE"]) {
        folder.shell([`PRAGMA wal_checkpoint(${mode})`]);
        await database.write(addNote, { id: `after ${mode} 1`, body });
        folder.shell(["UPDATE app_note SET body = 'short' WHERE half = 1"]);
        await database.write(addNote, { id: `after ${mode} 2` });
        expect(await noteCount(database)).toBeGreaterThan(40);
      }
    }));
});

/** Another client that limits the log: its first commit in a restarted log cuts off the rest. */
function limiting(folder: Folder): RawConnection {
  const other = loadDriver(driverName).open(folder.file(), { readOnly: false });
  for (const pragma of ["journal_size_limit = 0", "wal_autocheckpoint = 0", "cache_size = 10"])
    other.exec(`PRAGMA ${pragma}`);
  return other;
}

describe("a log whose end SQLite cuts off by itself", () => {
  test.each<[string, string]>([
    ["commits", "COMMIT"],
    ["is rolled back", "ROLLBACK"],
  ])("is whole after a transaction that spilled into a restarted log %s", (_, end) =>
    withFolder(async (folder) => {
      const database = await filled(folder, 100);
      const log = `${folder.file()}-wal`;
      const before = statSync(log).size;
      const other = limiting(folder);
      try {
        other.exec("UPDATE app_note SET body = 'other' WHERE half = 1");
        other.prepare("PRAGMA wal_checkpoint(RESTART)").all();
        other.exec("BEGIN IMMEDIATE");
        other.exec("UPDATE app_note SET body = body || 'spilled'");
        expect(await noteCount(database)).toBe(200);
        other.exec(end);
        other.exec("UPDATE app_note SET body = 'x' WHERE id = 'before-1'");
        expect(statSync(log).size).toBeLessThan(before);
        await database.write(addNote, { id: "a", body });
        await database.write(addNote, { id: "b", body });
      } finally {
        other.close();
      }
      expect(await noteCount(database)).toBe(204);
    }),
  );

  test("is counted without the frames of an earlier generation behind it", () =>
    withFolder(async (folder) => {
      const database = await filled(folder, 30);
      const fd = openSync(`${folder.file()}-wal`, "r");
      try {
        const files = { fd, database: folder.file(), seen: watchedSizes() };
        expect(noteLog(files)).toBe(true);
        const frames = () => Number((files.seen[0] ?? 0n) & 0xffff_ffffn);
        expect(frames()).toBe((statSync(`${folder.file()}-wal`).size - 32) / 4_120);
        folder.shell(["PRAGMA wal_checkpoint(RESTART)", "UPDATE holdfast_tick SET n = n + 1"]);
        expect(noteLog(files)).toBe(true);
        expect(frames()).toBe(1);
      } finally {
        closeSync(fd);
      }
      await database.close();
    }));
});

describe("a database file that is cut off while it is open", () => {
  test("stops writes", () =>
    withFolder(async (folder) => {
      const database = await filled(folder, 200);
      folder.shell(["PRAGMA wal_checkpoint(TRUNCATE)"]);
      await database.write(addNote, { id: "now it is seen", body });
      const { size } = statSync(folder.file());
      expect(size).toBeGreaterThan(400_000);
      truncateSync(folder.file(), size - 40_960);
      await expectStopped(database, "database file was cut off");
      await database.close();
    }));

  test("is not confused with one that a checkpoint makes smaller", () =>
    withFolder(async (folder) => {
      const database = await filled(folder, 200);
      folder.shell(["PRAGMA wal_checkpoint(TRUNCATE)"]);
      await database.write("empty", () => run(sql`DELETE FROM app_note`));
      const before = statSync(folder.file()).size;
      folder.shell(["VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)"]);
      expect(statSync(folder.file()).size).toBeLessThan(before);
      for (let index = 0; index < 50; index += 1)
        await database.write(addNote, { id: `after-${index}`, body });
      expect(await noteCount(database)).toBe(100);
    }));
});
