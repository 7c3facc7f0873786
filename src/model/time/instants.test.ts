import { describe, expect, test } from "vitest";
import { instantAfter, resolveStartAt, type StartAt } from "./instants.ts";

describe("a start time resolves", () => {
  const table: [StartAt, number][] = [
    ["now", 1_000],
    [{ at: 500 }, 500],
    [{ at: 500.2 }, 501],
    [{ at: new Date("2026-01-02T03:04:05.678Z") }, 1_767_323_045_678],
    [{ at: 8.64e15 }, 8.64e15],
    [{ in: 0 }, 1_000],
    [{ in: "2 days" }, 172_801_000],
  ];
  test.each(table)("%j from 1,000 to %d", (startAt, instant) => {
    expect(resolveStartAt(startAt, 1_000)).toBe(instant);
  });
});

describe("a start time is refused", () => {
  const table: [StartAt, string][] = [
    [{ at: -1 }, "TIME_OUT_OF_RANGE"],
    [{ at: Number.NaN }, "TIME_OUT_OF_RANGE"],
    [{ at: new Date(Number.NaN) }, "TIME_OUT_OF_RANGE"],
    [{ at: 8.64e15 + 1 }, "TIME_OUT_OF_RANGE"],
    [{ in: 8.64e15 }, "TIME_OUT_OF_RANGE"],
    [{ in: -1 }, "DURATION_INVALID"],
    [{ in: "99999999999999 weeks" }, "DURATION_INVALID"],
  ];
  test.each(table)("%j with %s", (startAt, code) => {
    expect(() => resolveStartAt(startAt, 1_000)).toThrow(expect.objectContaining({ code }));
  });
});

describe("an instant given in place of a start time", () => {
  test.each([new Date(1_000), 1_000])("%j is told where to be", (given) => {
    expect(() => resolveStartAt(given as never, 0)).toThrow(
      expect.objectContaining({
        code: "OPTION_INVALID",
        message: expect.stringContaining("write { at: date }") as string,
      }),
    );
  });
});

describe("the instant after a time", () => {
  test("counts from now, in whole milliseconds", () => {
    expect(instantAfter(1_000, "1.5 s", "a lease")).toBe(2_500);
    expect(instantAfter(1_000, 0, "a lease")).toBe(1_000);
  });

  test.each([
    [Number.NaN, "DURATION_INVALID"],
    [8.64e15, "TIME_OUT_OF_RANGE"],
    [2 ** 53 - 1, "TIME_OUT_OF_RANGE"],
  ])("refuses %d with %s", (duration, code) => {
    expect(() => instantAfter(1_000, duration, "a lease")).toThrow(
      expect.objectContaining({ code }),
    );
  });
});
