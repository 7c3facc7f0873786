import { statSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { rejection } from "../conformance/backend.ts";
import { addNote, addNoteAndThrow, createNoteTable, noteCount } from "../conformance/notes.ts";
import { isDeep } from "../depth.ts";
import { unhurried, withFolder } from "./place.ts";

const ids = (count: number): string[] => Array.from({ length: count }, (_, index) => `n${index}`);

describe("a batch", () => {
  test("ends after so many calls", () =>
    withFolder(async (folder) => {
      const database = await folder.open({
        limits: { ...unhurried, batchCalls: 10 },
      });
      await database.write("tables", createNoteTable);
      await Promise.all(ids(100).map((id) => database.write(addNote, { id })));
      expect(database.stats().batchSize.max).toBe(10);
    }));

  test("ends after so many bytes, so a large call goes nearly alone", () =>
    withFolder(async (folder) => {
      const database = await folder.open({ limits: { batchBytes: 1_000 } });
      await database.write("tables", createNoteTable);
      const body = "x".repeat(600);
      await Promise.all(ids(20).map((id) => database.write(addNote, { id, body })));
      expect(database.stats().batchSize.max).toBe(1);
    }));

  test("ends after so many milliseconds", () =>
    withFolder(async (folder) => {
      const database = await folder.open({ limits: { batchMs: 1 } });
      await database.write("tables", createNoteTable);
      const slow = (id: string) =>
        database.write("slow", function* () {
          const until = performance.now() + 2;
          while (performance.now() < until);
          return yield* addNote({ id });
        });
      await Promise.all(ids(10).map(slow));
      expect(database.stats().batchSize.max).toBe(1);
    }));

  test("starts while the last one is being flushed when it will be full too", () =>
    withFolder(async (folder) => {
      const database = await folder.open(
        { limits: { batchBytes: 1_000 } },
        // So long that the second has committed, however busy the machine is.
        { flush: { place: "thread", faults: { delayMs: 400 } } },
      );
      await database.write("tables", createNoteTable);
      const before = database.stats().commits;
      const body = "x".repeat(600);
      const [first, ...others] = ids(3).map((id) => database.write(addNote, { id, body }));
      await first;
      expect(database.stats().commits - before).toBe(2);
      await Promise.all(others);
    }));

  test("is run again with savepoints when a call fails after it wrote, and only then", () =>
    withFolder(async (folder) => {
      const database = await folder.open();
      await database.write("tables", createNoteTable);
      await Promise.all(ids(50).map((id) => database.write(addNote, { id })));
      expect(database.stats().reruns).toBe(0);
      await Promise.all([
        ...["a", "b"].map((id) => database.write(addNote, { id })),
        rejection(database.write(addNoteAndThrow, { id: "c" })),
        rejection(database.write(addNoteAndThrow, { id: "d" })),
      ]);
      expect(database.stats().reruns).toBe(1);
      expect(database.stats().rollbacks).toBe(2);
      expect(await noteCount(database)).toBe(104);
    }));

  test("is acknowledged at COMMIT when durability is normal", () =>
    withFolder(async (folder) => {
      const database = await folder.open({ durability: "normal" });
      await database.write("tables", createNoteTable);
      await Promise.all(ids(50).map((id) => database.write(addNote, { id })));
      expect(database.durability).toBe("normal");
      expect(database.stats().flushes).toBe(0);
      expect(await noteCount(database)).toBe(100);
    }));
});

describe("the write-ahead log", () => {
  test("stays bounded under steady writing", () =>
    withFolder(async (folder) => {
      const walBytes = 1_048_576;
      const database = await folder.open({ limits: { walBytes } });
      await database.write("tables", createNoteTable);
      const body = "x".repeat(500);
      const write = (round: number, calls: number): Promise<unknown> =>
        Promise.all(
          ids(calls).map((id) => database.write(addNote, { id: `${round}-${id}`, body })),
        );
      // The thread that looks after the log starts with the first need of it, which takes its time on a busy machine.
      let round = 0;
      while (database.stats().checkpoints.passive === 0) {
        await write((round += 1), 50);
        await sleep(5);
      }
      const few = round;
      const rounds = isDeep ? 60 : 12;
      const { checkpoints } = database.stats();
      const restarts = (): number => database.stats().checkpoints.restarts - checkpoints.restarts;
      // As long as it takes on a busy machine: without restarts this would not end.
      while (round < few + rounds || restarts() < 3) await write((round += 1), 1_000);
      // A batch of 256 calls adds about 0.5 MB between two looks at the log; a thread that has to wait for a processor looks late.
      const writtenBytes = (round - few) * 2_000 * body.length;
      expect(statSync(`${folder.file()}-wal`).size).toBeLessThan(
        Math.max(8 * walBytes, writtenBytes / 2),
      );
      expect(await noteCount(database)).toBe(few * 100 + (round - few) * 2_000);
    }));

  test("is empty after a close", () =>
    withFolder(async (folder) => {
      const database = await folder.open();
      await database.write("tables", createNoteTable);
      await database.close();
      expect(statSync(`${folder.file()}-wal`, { throwIfNoEntry: false })).toBeUndefined();
    }));
});
