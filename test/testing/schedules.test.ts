import { expect, test } from "vitest";
import { schedule, signal, workflow } from "../../src/index.ts";
import { testHoldfast } from "../../src/testing.ts";

const report = workflow("report", async () => "made");
const nightly = () => schedule("nightly", { cron: "0 2 * * *" }, report);

test("time that is moved by hand comes to each instant of a schedule, also after a crash", async () => {
  const kit = await testHoldfast([report, nightly()], {
    now: Date.UTC(2026, 0, 1),
  });
  await kit.skip("2 days");
  await kit.crash();
  await kit.skip("1 day");
  const { items } = await kit.runs.list({ tag: "schedule:nightly" });
  expect(items.map(({ id }) => id as string).toSorted()).toEqual([
    "nightly@2026-01-01T02:00:00Z",
    "nightly@2026-01-02T02:00:00Z",
    "nightly@2026-01-03T02:00:00Z",
  ]);
  expect(await kit.get(report, items[0]?.id ?? "").result()).toBe("made");
  await kit.close();
});

test("a schedule does not keep a run that is stuck from being told", async () => {
  const stuck = workflow("stuck", async (ctx) => ctx.receive(signal("never")));
  const kit = await testHoldfast([report, stuck, nightly()]);
  await expect(kit.run(stuck)).rejects.toMatchObject({ code: "RUN_STUCK" });
  await kit.close();
});

test("the result of a run that is fired by hand is worth moving time for", async () => {
  const slow = workflow("slow", async (ctx) => {
    await ctx.sleep("1 hour");
    return "rested";
  });
  const hourly = schedule("hourly", { every: "1 hour" }, slow);
  const kit = await testHoldfast([slow, hourly]);
  const run = await kit.schedules.fire("hourly", { key: "now" });
  expect(await run.result()).toBe("rested");
  expect(await kit.schedules.pause("hourly")).toBe(true);
  await kit.close();
});
