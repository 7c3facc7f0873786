import path from "node:path";
import { describe } from "vitest";
import { holdfastOn } from "../../src/open/open-holdfast.ts";
import { withFolder } from "../sqlite/place.ts";
import { crashLoopSuite } from "./crash-loop.suite.ts";

describe("worker processes on one file that die and are started again", () => {
  crashLoopSuite((body) =>
    withFolder(async (folder) => {
      const database = await folder.open();
      await body({
        holdfast: await holdfastOn(database),
        database,
        place: folder.file(),
        effects: path.join(folder.path, "effects.txt"),
      });
    }),
  );
});
