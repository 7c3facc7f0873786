import { describe, expect, test } from "vitest";
import { cadenceOf, instantsOf } from "./cadence.ts";
import { cronInstants } from "./cron.ts";

const day = (text: string): number => Date.parse(`2026-${text}Z`);

function instants(cron: string, timeZone: string, after: number, count: number): readonly string[] {
  const { next } = instantsOf(cadenceOf({ cron, timeZone }, 0));
  const found: string[] = [];
  for (let last = after; found.length < count;) {
    last = next(last) ?? Number.NaN;
    found.push(new Date(last).toISOString().slice(5, 16));
  }
  return found;
}

describe("a cron expression", () => {
  test.each<[string, object]>([
    ["", { reason: "fields" }],
    ["* * * *", { reason: "fields" }],
    ["* * * * * * *", { reason: "fields" }],
    ["2030-01-01T00:00:00", { reason: "fields" }],
    ["@reboot", { reason: "fields" }],
    ["@often", { reason: "fields" }],
    ["60 * * * *", { reason: "syntax", field: "minute", position: 0 }],
    ["0 24 * * *", { reason: "syntax", field: "hour", position: 2 }],
    ["0 0 32 * *", { reason: "syntax", field: "day", position: 4 }],
    ["0 0 *  13 *", { reason: "syntax", field: "month", position: 7 }],
    ["0 0 * * FOO", { reason: "syntax", field: "weekday", position: 8 }],
    ["61 0 0 * * *", { reason: "syntax", field: "second", position: 0 }],
    ["*/0 * * * *", { reason: "syntax", field: "minute", position: 0 }],
    ["0 5-1 * * *", { reason: "syntax", field: "hour", position: 2 }],
    ["? * * * *", { reason: "syntax", field: "minute", position: 0 }],
    ["0 0 30 2 *", { reason: "never" }],
    ["* ".repeat(200), { reason: "length" }],
  ])("%j is refused with the reason and the place", (cron, details) => {
    expect(() => cadenceOf({ cron }, 0)).toThrow(
      expect.objectContaining({
        code: "CRON_INVALID",
        details: expect.objectContaining(details) as object,
      }),
    );
  });

  test.each([null, 7, {}, undefined])("that is no text (%j) is refused", (cron) => {
    expect(() => cadenceOf({ cron } as never, 0)).toThrow(
      expect.objectContaining({ code: "CRON_INVALID" }),
    );
  });

  test.each(["Mars/Base", "", 5, null])("with the time zone %j is refused", (timeZone) => {
    expect(() => cadenceOf({ cron: "0 0 * * *", timeZone } as never, 0)).toThrow(
      expect.objectContaining({ code: "TIME_ZONE_INVALID" }),
    );
  });

  test.each([undefined, null, 5, {}, { cron: "0 0 * * *", every: "1h" }])(
    "or an interval, and not %j, is what makes a schedule",
    (draft) => {
      expect(() => cadenceOf(draft as never, 0)).toThrow(
        expect.objectContaining({ code: "OPTION_INVALID" }),
      );
    },
  );

  test("means UTC unless told", () => {
    expect(cadenceOf({ cron: "0 9 * * *" }, 0)).toEqual({
      kind: "cron",
      expression: "0 9 * * *",
      timeZone: "UTC",
    });
    expect(instants("30 9 * * 1-5", "UTC", day("01-02T00:00"), 3)).toEqual([
      "01-02T09:30",
      "01-05T09:30",
      "01-06T09:30",
    ]);
    expect(instants("@daily", "Asia/Tokyo", day("01-02T00:00"), 2)).toEqual([
      "01-02T15:00",
      "01-03T15:00",
    ]);
  });

  test("for a time of day that clocks leave out fires at the end of the gap", () => {
    expect(instants("30 2 * * *", "Europe/Berlin", day("03-28T00:00"), 3)).toEqual([
      "03-28T01:30",
      "03-29T01:00",
      "03-30T00:30",
    ]);
  });

  test("that repeats has no instants in the gap", () => {
    expect(instants("*/30 2 * * *", "Europe/Berlin", day("03-28T00:00"), 4)).toEqual([
      "03-28T01:00",
      "03-28T01:30",
      "03-30T00:00",
      "03-30T00:30",
    ]);
    expect(instants("0 * * * *", "Europe/Berlin", day("03-28T23:30"), 3)).toEqual([
      "03-29T00:00",
      "03-29T01:00",
      "03-29T02:00",
    ]);
  });

  test("for a time of day that clocks show twice fires the first time", () => {
    expect(instants("30 2 * * *", "Europe/Berlin", day("10-24T12:00"), 2)).toEqual([
      "10-25T00:30",
      "10-26T01:30",
    ]);
  });

  test("that repeats fires both times", () => {
    expect(instants("*/30 2 * * *", "Europe/Berlin", day("10-24T12:00"), 5)).toEqual([
      "10-25T00:00",
      "10-25T00:30",
      "10-25T01:00",
      "10-25T01:30",
      "10-26T01:00",
    ]);
  });

  test("names the same instants backwards as forwards, also where clocks change", () => {
    for (const [expression, timeZone, ...starts] of [
      ["30 2 * * *", "Europe/Berlin", "03-28", "10-24"],
      ["*/30 2 * * *", "Europe/Berlin", "03-28", "10-24"],
      ["*/20 1-3 * * *", "America/New_York", "03-07", "10-31"],
      ["*/30 * * * *", "Australia/Lord_Howe", "04-04", "10-03"],
    ] as const)
      for (const start of starts) {
        const { next, ...others } = cronInstants({
          kind: "cron",
          expression,
          timeZone,
        });
        const latest = (...asked: Parameters<typeof others.latest>) => {
          const search = others.latest(...asked);
          let step = search.next();
          while (step.done !== true) step = search.next();
          return step.value;
        };
        const from = day(`${start}T00:00`);
        const until = from + 2 * 86_400_000;
        const forwards: number[] = [];
        for (let each = next(from); each !== undefined && each <= until;) {
          forwards.push(each);
          each = next(each);
        }
        const count = forwards.length - 1;
        for (const end of [until, until + 999])
          expect(latest(from, end, count)).toEqual(forwards.slice(1));
        expect(latest(from, until, 1_000)).toEqual(forwards);
        const last = forwards.at(-1) ?? 0;
        expect(latest(from, last, 1)).toEqual([last]);
        expect(latest(from, last - 1, 1)).toEqual([forwards.at(-2)]);
        expect(latest(last, until, 1)).toEqual([]);
      }
  });
});
