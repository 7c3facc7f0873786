import { expect, test } from "vitest";
import { manualClock } from "../../src/model/time/clock.ts";
import { writeEveryRow } from "../conformance/every-row.ts";
import { unrefused } from "../fixtures/unsound-rows.ts";
import { withNewPlace } from "./place.ts";

test("the checks of our tables refuse what no operation writes", () =>
  withNewPlace(async (place) => {
    const clock = manualClock(1_000_000);
    const database = await place.open({ clock });
    await writeEveryRow(database, clock);
    expect(await unrefused(database)).toEqual([]);
  }));
