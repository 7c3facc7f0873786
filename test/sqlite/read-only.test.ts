import { chmodSync, existsSync, readdirSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { addNote, createNoteTable } from "../conformance/notes.ts";
import { mayBeNobody, openAsNobody } from "./nobody.ts";
import { withFolder } from "./place.ts";
import type { Folder } from "./place.ts";

/** Lets everyone read the files, and nobody write to their folder. */
function closeToWriters(folder: Folder, ...names: readonly string[]): void {
  for (const name of names) chmodSync(folder.file(name), 0o444);
  chmodSync(folder.path, 0o555);
}

const readAsNobody = (folder: Folder): string => openAsNobody(folder.file(), { readOnly: true });

describe.runIf(mayBeNobody)("reading a file in a folder that may not be written", () => {
  test("in write-ahead mode is refused, and the refusal says what helps", () =>
    withFolder(async (folder) => {
      await (await folder.open()).close();
      closeToWriters(folder, "app.db");
      const said = readAsNobody(folder);
      chmodSync(folder.path, 0o755);
      expect(said).toMatch(/^DATABASE_NOT_WRITABLE .*app\.db" cannot be read/);
      expect(said).toContain("Allow this user to write to the folder");
      expect(said).toContain("database.backup");
      expect(said).not.toContain("open it with { readOnly: true }");
    }));

  test("is possible for a copy that database.backup made", () =>
    withFolder(async (folder) => {
      const database = await folder.open({}, {}, "source.db");
      await database.backup(folder.file());
      closeToWriters(folder, "app.db");
      expect(readAsNobody(folder)).toBe("opened\n");
      chmodSync(folder.path, 0o755);
    }));

  test("is possible while another process has it open for writing", () =>
    withFolder(async (folder) => {
      const database = await folder.open();
      await database.write("tables", createNoteTable);
      await database.write(addNote, { id: "n" });
      closeToWriters(folder, "app.db", "app.db-wal", "app.db-shm");
      expect(existsSync(folder.file("app.db-shm"))).toBe(true);
      expect(readAsNobody(folder)).toBe("opened\n");
      chmodSync(folder.path, 0o755);
    }));

  test("that may not be read either is refused with the permissions to check", () =>
    withFolder(async (folder) => {
      await (await folder.open()).close();
      chmodSync(folder.file(), 0o000);
      chmodSync(folder.path, 0o755);
      const said = readAsNobody(folder);
      expect(said).toContain("cannot be read. Check the permissions");
      expect(said).not.toContain("readOnly");
    }));
});

test("reading a copy that database.backup made leaves nothing beside it", () =>
  withFolder(async (folder) => {
    const database = await folder.open({}, {}, "source.db");
    await database.backup(folder.file());
    const copy = await folder.open({ readOnly: true });
    expect(readdirSync(folder.path).filter((name) => name.startsWith("app.db"))).toEqual([
      "app.db",
    ]);
    await copy.close();
  }));
