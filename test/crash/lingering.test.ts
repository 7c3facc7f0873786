import { describe, expect, test } from "vitest";
import { Folder } from "../sqlite/place.ts";
import { Child } from "./child.ts";
import { lingeringSuite } from "./lingering.suite.ts";
import { pendingWaits } from "./pending-waits.ts";

describe("on a file", () => {
  lingeringSuite(async () => {
    const folder = new Folder();
    const database = await folder.open();
    return {
      place: folder.file(),
      database,
      dispose: () => folder.dispose(),
    };
  });
});

describe("in memory", () => {
  test("a process lives on while it waits, each time until the time is over", async () => {
    const child = new Child("lingering.ts", [":memory:", "waits"]);
    expect(await child.ended).toBe(0);
    expect(child.errors).toBe("");
    expect(child.lines).toEqual([
      ...Object.keys(pendingWaits).map((name) => `${name} DEADLINE_EXCEEDED`),
      "end of script",
    ]);
  });

  test("[RT16] a process lives on while all its runs sleep", async () => {
    const child = new Child("lingering.ts", [":memory:", "work"]);
    await child.reported(2);
    expect(child.lines).toEqual(["end of script", "slept"]);
    child.process.kill("SIGTERM");
    expect(await child.ended).toBe("SIGTERM");
  });

  test("a process ends by itself with a database that is only open", async () => {
    const child = new Child("lingering.ts", [":memory:", "open"]);
    expect(await child.ended).toBe(0);
    expect(child.lines).toEqual(["end of script"]);
  });
});
