import path from "node:path";
import { describe, expect, test } from "vitest";
import { manualClock } from "../../src/model/time/clock.ts";
import { holdfastOn } from "../../src/open/open-holdfast.ts";
import { programsSurviveKills } from "../crash/program-kill.suite.ts";
import { survivesKills } from "../crash/runtime-kill.suite.ts";
import { schedulesSurviveKills } from "../crash/scheduled-kill.suite.ts";
import { startsOnce } from "../crash/same-start.suite.ts";
import { isDeep } from "../depth.ts";
import { withFolder } from "../sqlite/place.ts";
import { crashServer } from "./crash-server.ts";
import { withOwnServer } from "./own-server.ts";
import { withPlace } from "./place.ts";

test("runs that two processes start at once under one id are one run", () =>
  withFolder((folder) =>
    withPlace(async (place) => {
      const effects = path.join(folder.path, "effects.txt");
      const told = `${place.url}#${place.schema}`;
      expect(await startsOnce(told, effects)).toBe(50);
    }),
  ));

test("two workers that are killed again and again start each instant of a month once, by each way to overlap", () =>
  withFolder((folder) =>
    withPlace(async (place) => {
      const clock = manualClock(Date.UTC(2026, 10, 9, 12));
      const instants = await schedulesSurviveKills({
        holdfast: await holdfastOn(await place.open({ clock })),
        place: `${place.url}#${place.schema}`,
        effects: path.join(folder.path, "effects.txt"),
        steps: isDeep ? 15 : 2,
      });
      expect(instants).toBe(31);
    }),
  ));

describe("workers on one server that are killed with SIGKILL", () => {
  const runs = isDeep ? 200 : 24;
  const kills = isDeep ? 40 : 4;
  /** After these kills the server crashes too, and recovers from its log. */
  const crashes = isDeep ? [10, 25] : [0, 2];

  test(`[RT2] ${runs} workflows of ten steps all end rightly over ${kills} kills and two crashes of the server, and no recorded step runs again`, () =>
    withFolder((folder) =>
      withOwnServer(async (place) => {
        const database = await place.open({ poolSize: 8 });
        const ended = await survivesKills({
          holdfast: await holdfastOn(database),
          place: `${place.url}#${place.schema}`,
          effects: path.join(folder.path, "effects.txt"),
          pauseMs: isDeep ? 600 : 150,
          runs,
          kills,
          async after(kill) {
            if (!crashes.includes(kill)) return false;
            await crashServer(place);
            return true;
          },
        });
        expect(ended).toBe(runs);
      }),
    ));

  const rounds = isDeep ? 6 : 1;

  test(`[RT1] [RT2] random programs see the same in all the processes that ran them, ${rounds} times`, () =>
    withFolder((folder) =>
      withPlace(async (place) => {
        const compared = await programsSurviveKills({
          database: await place.open(),
          place: `${place.url}#${place.schema}`,
          traces: path.join(folder.path, "traces.txt"),
          rounds,
          programs: 8,
          kills: 2,
        });
        expect(compared).toBe(rounds * 8);
      }),
    ));
});
