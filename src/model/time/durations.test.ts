import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { durationMs, type Duration } from "./durations.ts";

describe("numbers are milliseconds", () => {
  test.each([
    [0, 0],
    [-0, 0],
    [1, 1],
    [1.2, 2],
    [86_400_000, 86_400_000],
    [Number.MAX_SAFE_INTEGER, 9_007_199_254_740_991],
  ])("%d is %d ms", (value, ms) => {
    expect(durationMs(value)).toBe(ms);
  });
});

describe("text is an amount with one unit", () => {
  const table: [Duration, number][] = [
    ["0ms", 0],
    ["500ms", 500],
    ["1 millisecond", 1],
    ["30s", 30_000],
    ["2 sec", 2_000],
    ["1 minute", 60_000],
    ["5m", 300_000],
    ["5 min", 300_000],
    ["1.5 h", 5_400_000],
    ["12 hours", 43_200_000],
    ["2 days", 172_800_000],
    ["1 week", 604_800_000],
    ["2w", 1_209_600_000],
    ["1.1s", 1_100],
    ["0.0001s", 1],
    ["4294967295 s", 4_294_967_295_000],
    ["9007199254740991ms", 9_007_199_254_740_991],
  ];
  test.each(table)("%s is %d ms", (text, ms) => {
    expect(durationMs(text)).toBe(ms);
  });

  test("case does not matter", () => {
    expect(durationMs("2 Days")).toBe(172_800_000);
    expect(durationMs("10MS")).toBe(10);
  });
});

describe("anything else is refused", () => {
  test.each<unknown>([
    "",
    "500",
    "ms",
    "-1s",
    "+1s",
    "1e3s",
    ".5s",
    "1. s",
    "1  s",
    " 1s",
    "1s ",
    "1h30m",
    "1 month",
    "1 constructor",
    "9007199254740992ms",
    "9007199254740991 weeks",
    "99999999999999999s",
    -1,
    -0.5,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    2 ** 53,
    undefined,
    null,
    5n,
    {},
  ])("%s", (value) => {
    expect(() => durationMs(value as number)).toThrow(
      expect.objectContaining({ code: "DURATION_INVALID" }),
    );
  });

  test("the error names what was being set, what it got and what it accepts", () => {
    expect(() => durationMs("soon", "the sleep time")).toThrow(
      'Expected the sleep time as milliseconds (a number from 0 to 2^53 - 1) or as an amount with one unit (ms, s, min, h, d, w or their long names), such as "500ms", "30s", "1.5 h" or "2 days"; got "soon".',
    );
  });
});

test("rounding never shortens, and adds less than a millisecond", () => {
  fc.assert(
    fc.property(fc.double({ min: 0, max: 2 ** 40, noNaN: true }), (value) => {
      const ms = durationMs(value);
      expect(Number.isInteger(ms)).toBe(true);
      expect(ms >= value && ms - 1 < value).toBe(true);
    }),
  );
});

test("a hundred hundredths of a unit are that unit", () => {
  fc.assert(
    fc.property(fc.nat(1_000_000), (hundredths) => {
      const text = `${Math.floor(hundredths / 100)}.${String(hundredths % 100).padStart(2, "0")}s`;
      expect(durationMs(text)).toBe(hundredths * 10);
    }),
  );
});
