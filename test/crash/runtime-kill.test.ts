import path from "node:path";
import { describe, expect, test } from "vitest";
import { manualClock } from "../../src/model/time/clock.ts";
import { holdfastOn } from "../../src/open/open-holdfast.ts";
import { isDeep } from "../depth.ts";
import { withFolder } from "../sqlite/place.ts";
import { programsSurviveKills } from "./program-kill.suite.ts";
import { survivesKills } from "./runtime-kill.suite.ts";
import { schedulesSurviveKills } from "./scheduled-kill.suite.ts";
import { startsOnce } from "./same-start.suite.ts";

test("runs that two processes start at once under one id are one run", () =>
  withFolder(async (folder) => {
    const effects = path.join(folder.path, "effects.txt");
    expect(await startsOnce(folder.file(), effects)).toBe(50);
  }));

test("two workers that are killed again and again start each instant of a month once, by each way to overlap", () =>
  withFolder(async (folder) => {
    const clock = manualClock(Date.UTC(2026, 10, 9, 12));
    const instants = await schedulesSurviveKills({
      holdfast: await holdfastOn(await folder.open({ clock })),
      place: folder.file(),
      effects: path.join(folder.path, "effects.txt"),
      steps: isDeep ? 15 : 4,
    });
    expect(instants).toBe(31);
  }));

describe("workers on one file that are killed with SIGKILL", () => {
  const runs = isDeep ? 200 : 24;
  const kills = isDeep ? 60 : 5;

  test(`[RT2] ${runs} workflows of ten steps all end rightly over ${kills} kills, and no recorded step runs again`, () =>
    withFolder(async (folder) => {
      const ended = await survivesKills({
        holdfast: await holdfastOn(await folder.open()),
        place: folder.file(),
        effects: path.join(folder.path, "effects.txt"),
        pauseMs: isDeep ? 600 : 150,
        runs,
        kills,
      });
      expect(ended).toBe(runs);
    }));

  const rounds = isDeep ? 10 : 1;

  test(`[RT1] [RT2] random programs see the same in all the processes that ran them, ${rounds} times`, () =>
    withFolder(async (folder) => {
      const compared = await programsSurviveKills({
        database: await folder.open(),
        place: folder.file(),
        traces: path.join(folder.path, "traces.txt"),
        rounds,
        programs: 12,
        kills: 4,
      });
      expect(compared).toBe(rounds * 12);
    }));
});
