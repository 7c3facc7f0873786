import {
  existsSync,
  readFileSync,
  readdirSync,
  renameSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { describe, expect, test } from "vitest";
import type { Warning } from "../../src/kernel.ts";
import { rejection } from "../conformance/backend.ts";
import { createNoteTable, noteCount } from "../conformance/notes.ts";
import { withFolder } from "../sqlite/place.ts";
import type { Folder } from "../sqlite/place.ts";
import { Child } from "./child.ts";
import { acknowledged, notes } from "./note-report.ts";

/** A process that was killed once it had acknowledged so many notes, one after the other: all are in the log. */
async function killed(folder: Folder, count: number): Promise<Child> {
  const setup = await folder.open();
  await setup.write("tables", createNoteTable);
  await setup.close();
  const bound = 1_000_000_000;
  const child = new Child("note-writer.ts", [folder.file(), "n", 1, "Infinity", bound]);
  await child.reported(1 + count);
  child.kill();
  expect(await child.ended).toBe("SIGKILL");
  return child;
}

describe("a log without its database", () => {
  test.each<[string, (file: string) => void]>([
    ["missing", (file) => renameSync(file, `${file}.moved`)],
    [
      "empty",
      (file) => {
        renameSync(file, `${file}.moved`);
        writeFileSync(file, "");
      },
    ],
  ])(
    "is refused and left as it is when the file is %s, and all is there once it is back",
    (state, lose) =>
      withFolder(async (folder) => {
        const child = await killed(folder, 20);
        const log = `${folder.file()}-wal`;
        const before = readFileSync(log);
        lose(folder.file());
        const names = readdirSync(folder.path);
        for (const options of [{}, { readOnly: true }]) {
          const error = await rejection(folder.open(options));
          expect(error).toMatchObject({
            code: "LOG_WITHOUT_DATABASE",
            retryable: false,
            details: { logBytes: before.length },
          });
          expect(error.message).toContain(`is ${state}`);
          expect(error.message).toContain("Put the database file back");
          expect(error.message).toContain("move the log away");
        }
        expect(readdirSync(folder.path)).toEqual(names);
        expect(readFileSync(log).equals(before)).toBe(true);
        renameSync(`${folder.file()}.moved`, folder.file());
        const { whole } = await notes(await folder.open());
        expect(acknowledged(child).filter((id) => !whole.has(id))).toEqual([]);
      }),
  );

  test("is no obstacle when it is moved away, or holds nothing", () =>
    withFolder(async (folder) => {
      await killed(folder, 5);
      unlinkSync(folder.file());
      truncateSync(`${folder.file()}-wal`);
      await (await folder.open()).close();
      expect(existsSync(folder.file())).toBe(true);
    }));
});

describe("a log that was cut short", () => {
  const reopened = async (folder: Folder) => {
    const warnings: Warning[] = [];
    const database = await folder.open({
      onWarning: (warning) => warnings.push(warning),
    });
    return { database, warnings };
  };

  test("after a kill is nothing to warn of", () =>
    withFolder(async (folder) => {
      const child = await killed(folder, 50);
      const { database, warnings } = await reopened(folder);
      expect(warnings).toEqual([]);
      const { whole } = await notes(database);
      expect(acknowledged(child).filter((id) => !whole.has(id))).toEqual([]);
    }));

  test("by a flipped bit is told with what it may mean, and kept as it was", () =>
    withFolder(async (folder) => {
      const child = await killed(folder, 100);
      const log = `${folder.file()}-wal`;
      const bytes = readFileSync(log);
      const middle = 32 + 4_120 * Math.floor(bytes.length / 4_120 / 2) + 2_000;
      bytes.writeUInt8(bytes.readUInt8(middle) ^ 4, middle);
      writeFileSync(log, bytes);
      const { database, warnings } = await reopened(folder);
      expect(warnings).toMatchObject([{ code: "LOG_CUT_SHORT" }]);
      expect(warnings[0]?.message).toMatch(
        /damaged at frame \d+: behind it lie \d+ whole transactions .* may be lost .*app\.db-wal-cut-short/s,
      );
      expect(await noteCount(database)).toBeLessThan(2 * acknowledged(child).length);
      expect(readFileSync(`${folder.file()}-wal-cut-short`).equals(bytes)).toBe(true);
      await database.close();
      // The log was begun anew, so there is nothing more to tell.
      expect((await reopened(folder)).warnings).toEqual([]);
    }));
});
