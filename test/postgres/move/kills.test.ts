import { describe, expect, test } from "vitest";
import { Child } from "../../crash/child.ts";
import { isDeep, seed, seededRandom } from "../../depth.ts";
import type { Folder } from "../../sqlite/place.ts";
import { until } from "../place.ts";
import type { Place } from "../place.ts";
import {
  filled,
  giveUp,
  move,
  movedTables,
  rejection,
  targetCounts,
  targetFilled,
  withBoth,
} from "./moving.ts";

type Point = readonly [phase: "copying" | "verifying", number: number];

/** Where the mover is killed: at every table in a deep run, and at some of them otherwise. */
function points(): readonly Point[] {
  const all = (["copying", "verifying"] as const).flatMap((phase) =>
    movedTables.map((_, index): Point => [phase, index + 1]),
  );
  if (isDeep) return all;
  const random = seededRandom(seed);
  return [1, 2].map(() => all[Math.floor(random() * all.length)] as Point);
}

describe("a mover that is killed", () => {
  test("at a table leaves an empty target, and a source that goes on there or here", () =>
    withBoth(async (folder, place) => {
      await filled(folder);
      for (const [round, point] of points().entries()) {
        await killed(folder, place, point);
        expect(await targetFilled(place)).toEqual([]);
        expect(await rejection(folder.open())).toMatchObject({
          code: "MOVED_TO_POSTGRES",
          details: { state: "moving" },
        });
        if (round % 2 === 1) continue;
        await giveUp(folder, place);
        await (await folder.open()).close();
      }
      expect((await move(folder, place)).isRepeated).toBe(false);
      expect(Object.values(await targetCounts(place))).not.toContain(0);
    }));

  test("when everything has arrived is found so by the next one", () =>
    withBoth(async (folder, place) => {
      await filled(folder);
      await killed(folder, place, ["arrived"]);
      expect(Object.values(await targetCounts(place))).not.toContain(0);
      expect(await rejection(giveUp(folder, place))).toMatchObject({
        code: "MOVE_ARRIVED",
      });
      const { isRepeated, tables } = await move(folder, place);
      expect(isRepeated).toBe(true);
      expect(tables.map(({ name }) => name)).toEqual(movedTables);
      expect(await rejection(folder.open())).toMatchObject({
        code: "MOVED_TO_POSTGRES",
        details: { state: "moved" },
      });
    }));
});

async function killed(
  folder: Folder,
  place: Place,
  point: readonly (string | number)[],
): Promise<void> {
  const { url, schema, app } = place;
  const mover = new Child("mover.ts", [folder.file(), url, schema, ...point]);
  expect(await mover.ended).toBe("SIGKILL");
  expect(mover.lines).toEqual(["here"]);
  const shell = place.shell();
  // The server has seen the end of it.
  await until(async () => {
    const found = await shell`
      SELECT 1 FROM pg_stat_activity WHERE application_name = ${app} AND pid <> pg_backend_pid()`;
    return found.length === 0;
  });
  await shell.end();
}
