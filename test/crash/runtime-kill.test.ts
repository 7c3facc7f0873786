import path from "node:path";
import { describe, expect, test } from "vitest";
import { openHoldfast } from "../../src/open/open-holdfast.ts";
import { isDeep } from "../depth.ts";
import { withFolder } from "../sqlite/place.ts";
import { survivesKills } from "./runtime-kill.suite.ts";

describe("workers on one file that are killed with SIGKILL", () => {
  const runs = isDeep ? 500 : 60;
  const kills = isDeep ? 200 : 5;

  test(`[RT2] ${runs} workflows of ten steps all end rightly over ${kills} kills, and no recorded step runs again`, () =>
    withFolder(async (folder) => {
      const file = folder.file();
      const holdfast = await openHoldfast(file);
      try {
        const effects = path.join(path.dirname(file), "effects.txt");
        const ended = await survivesKills({
          holdfast,
          args: [file, effects, "{}"],
          runs,
          kills,
        });
        expect(ended).toBe(runs);
      } finally {
        await holdfast.close();
      }
    }));
});
