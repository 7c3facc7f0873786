import { describe, expect, test } from "vitest";
import { createNoteTable } from "../conformance/notes.ts";
import { isDeep, seed, seededRandom } from "../depth.ts";
import { withFolder } from "../sqlite/place.ts";
import { Child } from "./child.ts";
import { acknowledged, notes } from "./note-report.ts";
import { migrationNumbers } from "../fixtures/schema.ts";

describe("killed with SIGKILL under load", () => {
  const rounds = isDeep ? 20 : 2;

  test(`nothing acknowledged is lost and no call is half there, over ${rounds} rounds`, () =>
    withFolder(async (folder) => {
      const random = seededRandom(seed);
      const setup = await folder.open();
      await setup.write("tables", createNoteTable);
      await setup.close();
      const promised: string[] = [];
      for (let round = 0; round < rounds; round += 1) {
        const child = new Child("note-writer.ts", [folder.file(), `r${round}`, 40]);
        await child.reported(2 + Math.floor(random() * 3_000));
        child.kill();
        expect(await child.ended).toBe("SIGKILL");
        expect(child.errors).toBe("");
        promised.push(...acknowledged(child));
        const database = await folder.open();
        const { whole, half } = await notes(database);
        expect(promised.filter((id) => !whole.has(id))).toEqual([]);
        expect(half).toEqual([]);
        await database.close();
        expect(folder.shell(["PRAGMA integrity_check"])).toEqual([{ integrity_check: "ok" }]);
      }
      expect(promised.length).toBeGreaterThan(rounds);
    }));
});

describe("several processes on one file", () => {
  test("3 processes of 300 writes each: all 900 acknowledged and present", () =>
    withFolder(async (folder) => {
      const setup = await folder.open();
      await setup.write("tables", createNoteTable);
      await setup.close();
      const children = ["a", "b", "c"].map(
        (name) => new Child("note-writer.ts", [folder.file(), name, 30, 10]),
      );
      for (const child of children) {
        expect(await child.ended).toBe(0);
        expect(child.errors).toBe("");
        expect(acknowledged(child)).toHaveLength(300);
      }
      const { whole, half } = await notes(await folder.open());
      expect(whole.size).toBe(900);
      expect(half).toEqual([]);
      for (const child of children)
        expect(acknowledged(child).filter((id) => !whole.has(id))).toEqual([]);
    }));

  test("[A1] 8 processes open a new file at once: all succeed", () =>
    withFolder(async (folder) => {
      const children = Array.from(
        { length: 8 },
        (_, index) => new Child("note-writer.ts", [folder.file(), `p${index}`, 0]),
      );
      for (const child of children) {
        const ended = await child.ended;
        const { errors, lines } = child;
        expect({ ended, errors, lines }).toEqual({
          ended: 0,
          errors: "",
          lines: ["open", "closed"],
        });
      }
      expect(folder.shell(["SELECT number FROM holdfast_migration"])).toEqual(migrationNumbers);
    }));
});
