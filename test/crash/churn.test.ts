import { describe, expect, test } from "vitest";
import { createNoteTable } from "../conformance/notes.ts";
import { isDeep, seed, seededRandom } from "../depth.ts";
import { withFolder } from "../sqlite/place.ts";
import { Child } from "./child.ts";
import { acknowledged, notes } from "./note-report.ts";

describe("processes that come and go on one file", () => {
  const seconds = isDeep ? 20 : 2;

  test(`for ${seconds} s of opening, writing, closing and being killed: nothing acknowledged is lost`, () =>
    withFolder(async (folder) => {
      const random = seededRandom(seed);
      const setup = await folder.open();
      await setup.write("tables", createNoteTable);
      await setup.close();
      const promised: string[] = [];
      const endings: (number | NodeJS.Signals | null)[] = [];
      const until = Date.now() + seconds * 1_000;
      let born = 0;
      /**
       * One place at the table: a process after the other, every second one
       * killed, so that on a slow machine too both kinds come.
       */
      const place = async (): Promise<void> => {
        while (Date.now() < until) {
          born += 1;
          const isDoomed = born % 2 === 0;
          const child = new Child("note-writer.ts", [
            folder.file(),
            `b${born}`,
            10,
            isDoomed ? "Infinity" : 20,
          ]);
          if (isDoomed) {
            await child.reported(1 + Math.floor(random() * 400));
            child.kill();
          }
          endings.push(await child.ended);
          expect(child.errors).toBe("");
          promised.push(...acknowledged(child));
        }
      };
      await Promise.all(Array.from({ length: isDeep ? 6 : 3 }, place));
      expect(new Set(endings)).toEqual(new Set([0, "SIGKILL"]));
      const database = await folder.open();
      const { whole, half } = await notes(database);
      expect(promised.filter((id) => !whole.has(id))).toEqual([]);
      expect(half).toEqual([]);
      expect(await database.check({ full: true })).toMatchObject({ ok: true });
    }));
});
