import {
  copyFileSync,
  existsSync,
  readFileSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { describe, expect, test } from "vitest";
import { loadDriver } from "../../src/backends/sqlite/drivers/drivers.ts";
import { schemaNumber } from "../../src/sql/migrations.ts";
import { rejection } from "../conformance/backend.ts";
import { createNoteTable } from "../conformance/notes.ts";
import { driverName, withFolder } from "../sqlite/place.ts";
import type { Folder } from "../sqlite/place.ts";
import { Child } from "./child.ts";
import { acknowledged, notes } from "./note-report.ts";

const pageBytes = 4_096;

/** A process that was killed while the log held all it had acknowledged. */
async function killed(folder: Folder): Promise<Child> {
  const setup = await folder.open();
  await setup.write("tables", createNoteTable);
  await setup.close();
  const child = new Child("note-writer.ts", [folder.file(), "n", 1, "Infinity", 1_000_000_000]);
  await child.reported(1 + 100);
  child.kill();
  expect(await child.ended).toBe("SIGKILL");
  return child;
}

/** The same bytes each time; no page of them looks like one of SQLite's. */
function noise(length: number): Buffer {
  const bytes = Buffer.alloc(length);
  for (let at = 0, state = 1; at < length; at += 1) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    bytes[at] = state >>> 24;
  }
  return bytes;
}

function zeroPages(file: string, first: number, end: number): void {
  const bytes = readFileSync(file);
  bytes.fill(0, first * pageBytes, end * pageBytes);
  writeFileSync(file, bytes);
}

function rootPage(folder: Folder, table: string): number {
  const [found] = folder.shell(
    [`SELECT rootpage FROM sqlite_schema WHERE name = '${table}'`],
    "source.db",
  );
  return (found as { rootpage: number }).rootpage;
}

/** The files as a process leaves them that dies after some statements: nobody has emptied the log. */
function left(folder: Folder, statements: readonly string[]): void {
  const source = folder.file("source.db");
  const connection = loadDriver(driverName).open(source, { readOnly: false });
  for (const statement of ["PRAGMA wal_autocheckpoint = 0", ...statements])
    connection.exec(statement);
  copyFileSync(source, folder.file());
  copyFileSync(`${source}-wal`, `${folder.file()}-wal`);
  connection.close();
}

/** Tries to open, as a writer, as a reader and again unless told, and says what became of the files. */
async function tries(folder: Folder, readOnlys = [false, true, false]): Promise<readonly object[]> {
  const file = folder.file();
  const database = readFileSync(file);
  const log = readFileSync(`${file}-wal`);
  const outcomes: object[] = [];
  for (const readOnly of readOnlys) {
    const { code } = await rejection(folder.open({ readOnly }));
    outcomes.push({
      code,
      isSame:
        readFileSync(file).equals(database) &&
        existsSync(`${file}-wal`) &&
        readFileSync(`${file}-wal`).equals(log),
    });
  }
  return outcomes;
}

const refusedAndLeft = (code: string): readonly object[] =>
  Array.from({ length: 3 }, () => ({ code, isSame: true }));

describe("an open that fails", () => {
  test.each<[string, (file: string) => void]>([
    ["was cut off", (file) => truncateSync(file, 20_000)],
    ["holds random bytes", (file) => writeFileSync(file, noise(statSync(file).size))],
    ["lost its pages in the middle", (file) => zeroPages(file, 2, statSync(file).size / pageBytes)],
  ])(
    "leaves a file that %s and its log as they are, and all is there once the file is back",
    (_, damage) =>
      withFolder(async (folder) => {
        const child = await killed(folder);
        const file = folder.file();
        copyFileSync(file, `${file}.good`);
        damage(file);
        expect(await tries(folder)).toEqual(refusedAndLeft("DATABASE_DAMAGED"));
        const { message } = await rejection(folder.open());
        expect(message).toContain("left the file and its -wal as they are");
        expect(message).toContain("only if it belongs to that file");
        copyFileSync(`${file}.good`, file);
        const { whole } = await notes(await folder.open());
        expect(acknowledged(child).length).toBeGreaterThan(0);
        expect(acknowledged(child).filter((id) => !whole.has(id))).toEqual([]);
      }),
  );

  // The first is read by opening; the others only by what it writes once it has emptied the log.
  test.each(["holdfast_migration", "holdfast_owner", "holdfast_tick"])(
    "leaves a file whose damage is in %s and its log as they are",
    (table) =>
      withFolder(async (folder) => {
        await (await folder.open({}, {}, "source.db")).close();
        left(folder, ["CREATE TABLE app_fact (id)"]);
        const root = rootPage(folder, table);
        zeroPages(folder.file(), root - 1, root);
        expect(await tries(folder, [false, false])).toEqual(
          refusedAndLeft("DATABASE_DAMAGED").slice(1),
        );
      }),
  );

  test.each<[string, string]>([
    [
      "SCHEMA_NEWER",
      `INSERT INTO holdfast_migration (number, name, checksum, schema_hash, applied_at) VALUES (${schemaNumber + 1}, 'next', 'x', 'x', 0)`,
    ],
    ["SCHEMA_ALTERED", "ALTER TABLE holdfast_owner ADD COLUMN extra TEXT"],
  ])("with %s leaves the file and its log as they are", (code, statement) =>
    withFolder(async (folder) => {
      await (await folder.open({}, {}, "source.db")).close();
      left(folder, [statement]);
      expect(await tries(folder)).toEqual(refusedAndLeft(code));
    }),
  );
});
