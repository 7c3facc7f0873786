import { statSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { createNoteTable, noteCount } from "../conformance/notes.ts";
import { isDeep } from "../depth.ts";
import { withFolder } from "../sqlite/place.ts";
import { Child } from "./child.ts";
import { reportOf } from "./note-report.ts";

const walBytesBound = isDeep ? 4 * 1_048_576 : 262_144;
/**
 * On top of the bound comes what is written until a restart succeeds: a
 * checkpointer in whose way others are waits for up to two seconds, and a busy
 * machine lets 24 MB through in that time.
 */
const walBytesMax = 32 * 1_048_576 + 16 * walBytesBound;

describe("sustained writing", () => {
  const notes = isDeep ? 150_000 : 6_000;

  test.each([
    ["one process", 1, 0],
    ["three processes", 3, 0],
    ["one process and three overlapping readers", 1, 3],
  ])(`of ${notes} notes by %s keeps the log bounded, and no call fails`, (name, writers, readers) =>
    withFolder(async (folder) => {
      const setup = await folder.open();
      await setup.write("tables", createNoteTable);
      await setup.close();
      const watching = Array.from(
        { length: readers },
        () => new Child("overlapping-reader.ts", [folder.file()]),
      );
      // Else the writers might be through before anybody reads.
      for (const reader of watching) await reader.reported(1);
      const callers = 100;
      const each = Math.ceil(notes / writers / callers);
      const children = Array.from(
        { length: writers },
        (_, index) =>
          new Child("note-writer.ts", [
            folder.file(),
            `w${index}`,
            callers,
            each,
            walBytesBound,
            "report",
          ]),
      );
      let walBytes = 0;
      const looking = setInterval(() => {
        const found = statSync(`${folder.file()}-wal`, {
          throwIfNoEntry: false,
        });
        walBytes = Math.max(walBytes, found?.size ?? 0);
      }, 20);
      for (const child of children) {
        expect(await child.ended).toBe(0);
        expect(child.failures).toBe("");
      }
      clearInterval(looking);
      for (const reader of watching) {
        reader.tell("stop");
        expect(await reader.ended).toBe(0);
        expect(reader.failures).toBe("");
        const { snapshots } = JSON.parse(reader.lines.at(-1) ?? "{}") as {
          readonly snapshots?: number;
        };
        expect(snapshots).toBeGreaterThan(0);
      }
      let restarts = 0;
      for (const child of children) {
        const report = reportOf(child);
        restarts += report.restarts;
        console.log(`Sustained by ${name}: ${JSON.stringify(report)}`);
      }
      expect(restarts).toBeGreaterThan(0);
      expect(walBytes).toBeGreaterThan(0);
      expect(walBytes).toBeLessThan(walBytesMax);
      expect(await noteCount(await folder.open())).toBe(2 * writers * callers * each);
    }),
  );
});
