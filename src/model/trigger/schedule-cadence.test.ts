import { describe, expect, test } from "vitest";
import { intervalCadence, intervalInstants } from "./schedule-cadence.ts";

describe("an interval", () => {
  test.each<[string, object, string]>([
    ["below a second", { every: 999 }, "INTERVAL_INVALID"],
    ["of nothing", { every: 0 }, "INTERVAL_INVALID"],
    ["that is no duration", { every: "often" }, "DURATION_INVALID"],
    ["without a length", { every: undefined }, "DURATION_INVALID"],
    ["from half a millisecond", { every: "1h", from: 0.5 }, "TIME_OUT_OF_RANGE"],
    ["from before 1970", { every: "1h", from: -1 }, "TIME_OUT_OF_RANGE"],
    ["from a text", { every: "1h", from: "now" }, "TIME_OUT_OF_RANGE"],
    ["beyond all dates", { every: 8.64e15 }, "TIME_OUT_OF_RANGE"],
  ])("%s is refused", (_, draft, code) => {
    expect(() => intervalCadence(draft as never, 5)).toThrow(expect.objectContaining({ code }));
  });

  test("begins one length from now, or where it is told", () => {
    expect(intervalCadence({ every: "1 min" }, 5)).toEqual({
      kind: "interval",
      everyMs: 60_000,
      anchor: 60_005,
    });
    expect(intervalCadence({ every: "1 min", from: 7 }, 5).anchor).toBe(7);
  });

  test("has its anchor and every multiple after it", () => {
    const { next } = intervalInstants(1_000, 5_000);
    expect([0, 4_999, 5_000, 5_001, 5_999, 6_000].map(next)).toEqual([
      5_000, 5_000, 6_000, 6_000, 6_000, 7_000,
    ]);
  });

  test("ends where dates end", () => {
    const { next } = intervalInstants(1_000, 8.64e15 - 500);
    expect(next(0)).toBe(8_639_999_999_999_500);
    expect(next(8.64e15 - 500)).toBeUndefined();
  });

  test("names the last ones up to an instant", () => {
    const instants = intervalInstants(1_000, 5_000);
    const latest = (after: number, until: number, count: number) =>
      instants.latest(after, until, count).next().value;
    expect(latest(0, 4_999, 3)).toEqual([]);
    expect(latest(0, 5_000, 3)).toEqual([5_000]);
    expect(latest(0, 9_999, 3)).toEqual([7_000, 8_000, 9_000]);
    expect(latest(7_000, 9_999, 3)).toEqual([8_000, 9_000]);
    expect(latest(9_000, 9_999, 3)).toEqual([]);
  });
});
