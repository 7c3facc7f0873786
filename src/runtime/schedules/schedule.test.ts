import { describe, expect, test } from "vitest";
import { workflow } from "../definition/definitions.ts";
import { schedule } from "./schedule.ts";

const report = workflow("report", async () => 1);
const daily = { cron: "0 9 * * *" };

describe("making a schedule", () => {
  test.each<[string, unknown, string]>([
    ["no options", undefined, "OPTION_INVALID"],
    ["null", null, "OPTION_INVALID"],
    ["a text", "0 9 * * *", "OPTION_INVALID"],
    ["neither cron nor every", {}, "OPTION_INVALID"],
    ["both", { ...daily, every: "1h" }, "OPTION_INVALID"],
    ["an unknown option", { ...daily, zone: "UTC" }, "OPTION_INVALID"],
    ["a cron that is no text", { cron: 7 }, "CRON_INVALID"],
    ["a minute that does not exist", { cron: "60 * * * *" }, "CRON_INVALID"],
    ["a date that never comes", { cron: "0 0 30 2 *" }, "CRON_INVALID"],
    ["a time zone nobody knows", { ...daily, timeZone: "Mars/Base" }, "TIME_ZONE_INVALID"],
    ["a time zone for an interval", { every: "1h", timeZone: "UTC" }, "OPTION_INVALID"],
    ["half a second", { every: "500 ms" }, "INTERVAL_INVALID"],
    ["no duration", { every: "often" }, "DURATION_INVALID"],
    ["a start before 1970", { every: "1h", from: -1 }, "TIME_OUT_OF_RANGE"],
    ["an unknown overlap", { ...daily, overlap: "odd" }, "OPTION_INVALID"],
    ["an overlap of null", { ...daily, overlap: null }, "OPTION_INVALID"],
    ["an unknown catch-up", { ...daily, catchUp: true }, "OPTION_INVALID"],
    ["too much to catch up", { ...daily, catchUpMax: 1_001 }, "OPTION_INVALID"],
  ])("refuses %s with a code", (_, options, code) => {
    expect(() => schedule("a", options as never, report)).toThrow(
      expect.objectContaining({ code }),
    );
  });

  test.each([
    undefined,
    null,
    7,
    {},
    "",
    "a b",
    "a@b",
    "a:b",
    "a.b",
    "x".repeat(65),
    "E_run",
    "Delay_a",
    "\0",
    "\ud800",
  ])("refuses the name %j, of which no ids can be made", (name) => {
    expect(() => schedule(name as never, daily, report)).toThrow(
      expect.objectContaining({ code: "NAME_INVALID" }),
    );
  });

  test.each([undefined, null, 7, "report", {}, () => 1, { kind: "workflow" }])(
    "refuses %j in place of a function",
    (fn) => {
      expect(() => schedule("a", daily, fn as never)).toThrow(
        expect.objectContaining({ code: "OPTION_INVALID" }),
      );
    },
  );

  test("gives a value that has a name and cannot be changed", () => {
    const made = schedule("reports/nightly", daily, report);
    expect(made).toMatchObject({ kind: "schedule", name: "reports/nightly" });
    expect(Object.isFrozen(made)).toBe(true);
  });
});
