import { readdirSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { isDeep, seed, seededRandom } from "../depth.ts";
import { Neighbour, withFile } from "./neighbours.ts";

describe("many processes on one file", () => {
  const writers = isDeep ? 8 : 4;
  const notes = isDeep ? 5_000 : 500;

  test(`${writers} of them writing without an end: each gets its turns, and stats tell how long it waited`, () =>
    withFile(async (_, start) => {
      const started = await Promise.all(Array.from({ length: writers }, () => start()));
      for (const { child } of started) child.tell("flood 100000000");
      // None of them stops: whoever starves never gets there.
      for (const one of started) await one.until(() => one.flooded >= notes);
      for (const one of started) {
        const stats = await one.stats();
        expect(one.flooded).toBeGreaterThanOrEqual(notes);
        expect(stats?.rollbacks).toBe(0);
        expect(stats?.lockWaitMs.count).toBeGreaterThan(0);
        expect(stats?.lockWaitMs.max).toBeGreaterThan(0);
        expect(stats?.queueWaitMs.max).toBeGreaterThan(0);
        // A call that waited longer than it may would have ended the process
        // with DATABASE_BUSY.
        expect(one.child.errors).toBe("");
      }
    }));

  const many = isDeep ? 16 : 6;

  test(`${many} of them starting and dying together: every survivor hears of every death`, () =>
    withFile(async (folder, start) => {
      const random = seededRandom(seed);
      const survivors = await Promise.all([start(), start()]);
      const doomed = Array.from({ length: many }, () => new Neighbour(folder.file()));
      const lives = doomed.map(async ({ child }, index) => {
        // Some die while they open, some right after, some a little later.
        if (index % 2 === 0) await child.reported(1);
        await new Promise((resolve) => setTimeout(resolve, random() * 1_500));
        child.kill();
        await child.ended;
      });
      await Promise.all(lives);
      const dead = doomed.flatMap(({ facts }) => facts.flatMap(({ owner }) => owner ?? []));
      expect(dead.length).toBeGreaterThanOrEqual(many / 2);
      for (const survivor of survivors) {
        await survivor.until(() => dead.every((owner) => survivor.heardDeaths.includes(owner)));
        expect(new Set(survivor.heardDeaths).size).toBe(survivor.heardDeaths.length);
        // Nobody who lives was taken for dead.
        for (const other of survivors)
          expect(survivor.heardDeaths).not.toContain(await other.owner());
      }
      const living = await Promise.all(survivors.map((one) => one.owner()));
      const left = (): readonly string[] =>
        readdirSync(`${folder.file()}-owners`).filter((name) => name.endsWith(".lock"));
      while (left().length > living.length) await new Promise((resolve) => setTimeout(resolve, 20));
      expect([...left()].toSorted()).toEqual(living.map((owner) => `${owner}.lock`).toSorted());
      const database = await folder.open();
      expect(await database.check({ full: true })).toMatchObject({ ok: true });
      expect(
        readdirSync(`${folder.file()}-owners`).filter((name) => name.endsWith(".new")),
      ).toEqual([]);
    }));
});
