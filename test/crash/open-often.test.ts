import { describe, expect, test } from "vitest";
import { createNoteTable, noteCount } from "../conformance/notes.ts";
import { isDeep } from "../depth.ts";
import { withFolder } from "../sqlite/place.ts";
import { Child } from "./child.ts";

interface Report {
  readonly descriptors: number;
  readonly threads: number;
  readonly files: readonly string[];
  readonly sockets: readonly string[];
  readonly heapBytes: number;
  readonly residentBytes: number;
}

describe.runIf(process.platform === "linux")("a file", () => {
  const rounds = isDeep ? 2_000 : 100;
  /** A write starts threads, which take their time. */
  const writesEvery = isDeep ? 10 : 20;

  test(`that is opened and closed ${rounds} times leaves no memory, descriptor, thread or file behind`, () =>
    withFolder(async (folder) => {
      const setup = await folder.open();
      await setup.write("tables", createNoteTable);
      await setup.close();
      const child = new Child("open-often.ts", [folder.file(), rounds, writesEvery]);
      expect(await child.ended).toBe(0);
      expect(child.errors).toBe("");
      const [before, after] = child.lines.map((line) => JSON.parse(line) as Report) as [
        Report,
        Report,
      ];
      expect(after.descriptors).toBeLessThanOrEqual(before.descriptors);
      expect(after.threads).toBeLessThanOrEqual(before.threads);
      expect(after.files).toEqual(["app.db", "sockets"]);
      expect(after.sockets).toEqual([]);
      const grown = {
        heapBytes: after.heapBytes - before.heapBytes,
        residentBytes: after.residentBytes - before.residentBytes,
      };
      console.log(`${rounds} opens: ${JSON.stringify(grown)}`);
      expect(grown.heapBytes).toBeLessThan(8 * 1_048_576);
      expect(grown.residentBytes).toBeLessThan(384 * 1_048_576);
      const database = await folder.open();
      expect(await noteCount(database)).toBe(2 * (2 + rounds / writesEvery));
    }));
});
