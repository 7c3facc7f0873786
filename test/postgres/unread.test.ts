import { describe, expect, test } from "vitest";
import { holdfastOn } from "../../src/open/open-holdfast.ts";
import { losesNoMessage } from "../crash/unread.suite.ts";
import { isDeep } from "../depth.ts";
import { withPlace } from "./place.ts";

describe("messages around the timeouts of receives in another process, on one server", () => {
  for (const kills of [0, isDeep ? 20 : 2])
    test(`[RN5] are received or counted as unread, over ${kills} kills`, () =>
      withPlace(async (place) => {
        const { acknowledged } = await losesNoMessage({
          holdfast: await holdfastOn(await place.open()),
          place: `${place.url}#${place.schema}`,
          runs: isDeep ? 100 : 12,
          rounds: isDeep ? 200 : 24,
          kills,
        });
        expect(acknowledged).toBeGreaterThan(12);
      }));
});
