import { openHoldfast } from "../../src/index.ts";
import { Folder } from "../sqlite/place.ts";
import { describeRuns } from "./runs.suite.ts";

describeRuns("SQLite", () => {
  const folder = new Folder();
  return Promise.resolve({
    args: ["--db", folder.file()],
    open: () => openHoldfast(folder.file(), { onEvent: () => undefined }),
    dispose: () => folder.dispose(),
  });
});
