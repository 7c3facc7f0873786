import { describe, expect, test } from "vitest";
import { holdfastOn } from "../../src/open/open-holdfast.ts";
import { isDeep } from "../depth.ts";
import { withFolder } from "../sqlite/place.ts";
import { losesNoMessage } from "./unread.suite.ts";

describe("messages around the timeouts of receives in another process, on one file", () => {
  for (const kills of [0, isDeep ? 20 : 2])
    test(`[RN5] are received or counted as unread, over ${kills} kills`, () =>
      withFolder(async (folder) => {
        const { acknowledged } = await losesNoMessage({
          holdfast: await holdfastOn(await folder.open()),
          place: folder.file(),
          runs: isDeep ? 100 : 12,
          rounds: isDeep ? 200 : 24,
          kills,
        });
        expect(acknowledged).toBeGreaterThan(12);
      }));
});
