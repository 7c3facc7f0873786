import { expect, test } from "vitest";
import { exactInstant, spokenDuration, spokenInstant } from "./spoken.ts";

test.each([
  [0, "0 ms"],
  [-5, "0 ms"],
  [999.9, "999 ms"],
  [1_000, "1 s"],
  [2_350, "2.3 s"],
  [59_999, "59 s"],
  [60_000, "1 min"],
  [125_000, "2 min 5 s"],
  [7_500_000, "2 h 5 min"],
  [86_400_000, "1 day"],
  [3 * 86_400_000 + 4 * 3_600_000, "3 days 4 h"],
  [Number.NaN, "unknown"],
])("%d ms is %s", (ms, said) => {
  expect(spokenDuration(ms)).toBe(said);
});

const now = Date.parse("2026-11-17T21:10:05.250Z"); // a Tuesday

test.each([
  ["2026-11-17T21:10:45Z", "today 21:10:45"],
  ["2026-11-17T09:00:00Z", "today 09:00"],
  ["2026-11-18T09:00:00Z", "tomorrow 09:00"],
  ["2026-11-16T09:00:00Z", "yesterday 09:00"],
  ["2026-11-23T09:00:00Z", "Mon 09:00"],
  ["2026-11-24T09:00:00Z", "2026-11-24 09:00"],
])("%s is %s", (instant, said) => {
  expect(spokenInstant(Date.parse(instant), now, "UTC")).toBe(said);
});

test("days are those of the time zone", () => {
  const soon = now + 3 * 3_600_000;
  expect(spokenInstant(soon, now, "UTC")).toBe("tomorrow 00:10");
  expect(spokenInstant(soon, now, "America/New_York")).toBe("today 19:10");
});

test("an instant that no date has is told all the same", () => {
  expect(spokenInstant(1e17, now, "UTC")).toBe("an instant beyond all calendars");
  expect(exactInstant(1e17, "UTC")).toBe("100000000000000000");
});

test("an exact instant has milliseconds", () => {
  expect(exactInstant(now, "UTC")).toBe("2026-11-17 21:10:05.250");
});
