import { expect, test } from "vitest";
import { manualClock } from "./clock.ts";

test("a manual clock stands still until it is moved", () => {
  const clock = manualClock();
  expect([clock.now(), clock.now()]).toEqual([0, 0]);
  clock.advance(5);
  clock.advance(0);
  expect(clock.now()).toBe(5);
});

test("a manual clock can start anywhere and be set back", () => {
  const clock = manualClock(1_700_000_000_000);
  expect(clock.now()).toBe(1_700_000_000_000);
  clock.set(3);
  expect(clock.now()).toBe(3);
});

test.each([-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY])(
  "a manual clock refuses %d",
  (ms) => {
    const refused = expect.objectContaining({ code: "OPTION_INVALID" });
    const clock = manualClock(7);
    expect(() => manualClock(ms)).toThrow(refused);
    expect(() => clock.advance(ms)).toThrow(refused);
    expect(() => clock.set(ms)).toThrow(refused);
    expect(clock.now()).toBe(7);
  },
);
