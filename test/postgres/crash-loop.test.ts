import path from "node:path";
import { describe } from "vitest";
import { holdfastOn } from "../../src/open/open-holdfast.ts";
import { crashLoopSuite } from "../crash/crash-loop.suite.ts";
import { withFolder } from "../sqlite/place.ts";
import { withPlace } from "./place.ts";

describe("worker processes on one server that die and are started again", () => {
  crashLoopSuite((body) =>
    withFolder((folder) =>
      withPlace(async (place) => {
        const database = await place.open({ poolSize: 8 });
        await body({
          holdfast: await holdfastOn(database),
          database,
          place: `${place.url}#${place.schema}`,
          effects: path.join(folder.path, "effects.txt"),
        });
      }),
    ),
  );
});
