import { describe, expect, test } from "vitest";
import type { ExecutionId } from "../model/ids/execution-id.ts";
import { manualClock } from "../model/time/clock.ts";
import { Reports, type ReportedRun } from "./reports.ts";
import type { Notice } from "./runtime-event.ts";

function reporting() {
  const clock = manualClock(1_000_000);
  const told: Notice[] = [];
  const values = {
    readResult: () => {
      throw new Error("no key");
    },
  } as never;
  const reports = new Reports({ clock, values, tell: (notice) => told.push(notice) });
  return { clock, told, reports };
}

const run = (name = "f", id = "r-1"): ReportedRun => ({ id: id as ExecutionId, function: name });
const error = { name: "Error", message: "no" };
const failed = { step: "s", attempt: 1, retryAt: 1_000_500, error };
const later = () => new Promise((resolve) => setImmediate(resolve));

describe("reports", () => {
  test("[RN4] of 10,000 failures in a second are 20, and one that counts the others", async () => {
    const { clock, told, reports } = reporting();
    for (let n = 0; n < 10_000; n += 1) reports.attemptFailed(run(), failed);
    // Never on the stack of the code that failed.
    expect(told).toEqual([]);
    await later();
    expect(told).toHaveLength(20);
    clock.advance(1_000);
    await later();
    expect(told.slice(20)).toEqual([
      {
        level: "warn",
        message: "9980 more reports of f were left out within a second.",
        details: { kind: "reportsLeftOut", function: "f", leftOut: 9_980 },
      },
    ]);
    expect(reports.stats.functions["f"]?.failedAttempts).toBe(10_000);
  });

  test("[RN4] of each function and level have seconds of their own, also on a clock that is set back", async () => {
    const { clock, told, reports } = reporting();
    const burst = (): void => {
      for (let n = 0; n < 30; n += 1) {
        reports.attemptFailed(run("f"), failed);
        reports.attemptFailed(run("g"), failed);
        reports.endedAs(run("f"), "timedOut", () => undefined);
      }
    };
    burst();
    await later();
    expect(told).toHaveLength(60);
    clock.set(500_000);
    burst();
    await later();
    expect(told.filter(({ details }) => details["kind"] === "reportsLeftOut")).toHaveLength(3);
    expect(told).toHaveLength(123);
  });

  test("[RN4] are all made when the runtime closes", () => {
    const { told, reports } = reporting();
    for (let n = 0; n < 25; n += 1) reports.attemptFailed(run(), failed);
    reports.close();
    expect(told).toHaveLength(21);
    expect(told.at(-1)?.details).toMatchObject({ leftOut: 5 });
  });

  test("[RN4] name an end although its error cannot be read, and cut a long message", async () => {
    const { told, reports } = reporting();
    reports.ended(run(), { resultKind: "failed", result: "" as never });
    reports.attemptFailed(run(), {
      ...failed,
      error: { name: "Error", message: `${"x".repeat(9_000)}\u2028\r\n` },
    });
    await later();
    expect(
      told.map(({ message }) => message.length < 600 && !/[\r\n\u2028]/.test(message)),
    ).toEqual([true, true]);
    expect(told[0]).toMatchObject({ level: "error", message: "Run r-1 of f failed" });
  });

  test("[RN4] count a thousand functions by name, and the others together", () => {
    const { reports } = reporting();
    for (let n = 0; n < 1_500; n += 1) reports.started(`f-${n}`);
    reports.started("f-0");
    const { functions } = reports.stats;
    expect(Object.keys(functions)).toHaveLength(1_001);
    expect(functions["f-0"]?.started).toBe(2);
    expect(functions["*"]?.started).toBe(500);
  });
});
