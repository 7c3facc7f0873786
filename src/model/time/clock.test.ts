import { describe, expect, test } from "vitest";
import { instantOf, manualClock } from "./clock.ts";

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

test.each([-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY])("a manual clock refuses %d", (ms) => {
  const refused = expect.objectContaining({ code: "OPTION_INVALID" });
  const clock = manualClock(7);
  expect(() => manualClock(ms)).toThrow(refused);
  expect(() => clock.advance(ms)).toThrow(refused);
  expect(() => clock.set(ms)).toThrow(refused);
  expect(clock.now()).toBe(7);
});

describe("waking on a manual clock", () => {
  /** What was called, with the time it saw. */
  function diary(start = 0) {
    const clock = manualClock(start);
    const seen: string[] = [];
    const note = (name: string) => () => void seen.push(`${name}@${clock.now()}`);
    return { clock, seen, note };
  }

  test("happens at its instant, not before, and once", () => {
    const { clock, seen, note } = diary();
    clock.wakeAt(10, note("a"));
    clock.advance(9);
    expect(seen).toEqual([]);
    clock.advance(1);
    clock.advance(100);
    expect(seen).toEqual(["a@10"]);
  });

  test("goes by instant, equal ones by registration, whatever the stride", () => {
    const { clock, seen, note } = diary();
    clock.wakeAt(20, note("c"));
    clock.wakeAt(10, note("a"));
    clock.wakeAt(20, note("d"));
    clock.wakeAt(10, note("b"));
    clock.set(1_000);
    expect(seen).toEqual(["a@10", "b@10", "c@20", "d@20"]);
    expect(clock.now()).toBe(1_000);
  });

  test("reaches those who go to sleep again on the way", () => {
    const { clock, seen, note } = diary();
    clock.wakeAt(10, () => {
      note("first")();
      clock.wakeAt(clock.now() + 10, note("second"));
    });
    clock.wakeAt(15, note("between"));
    clock.advance(30);
    expect(seen).toEqual(["first@10", "between@15", "second@20"]);
  });

  test("lets one move the clock further", () => {
    const { clock, seen, note } = diary();
    clock.wakeAt(10, () => clock.advance(50));
    clock.wakeAt(40, note("a"));
    clock.advance(20);
    expect(seen).toEqual(["a@40"]);
    expect(clock.now()).toBe(60);
  });

  test("can be cancelled, also by somebody woken before", () => {
    const { clock, seen, note } = diary();
    const cancel = clock.wakeAt(20, note("cancelled"));
    clock.wakeAt(10, cancel);
    clock.wakeAt(20, note("kept"));
    clock.advance(20);
    cancel();
    expect(seen).toEqual(["kept@20"]);
  });

  test("comes soon for an instant that is over, but not at once", async () => {
    const { clock, seen, note } = diary(50);
    clock.wakeAt(50, note("now"));
    clock.wakeAt(7, note("past"));
    clock.wakeAt(51, note("future"));
    clock.wakeAt(3, note("cancelled"))();
    expect(seen).toEqual([]);
    await Promise.resolve();
    expect(seen).toEqual(["past@50", "now@50"]);
  });

  test("waits again for a clock that was set back", async () => {
    const { clock, seen, note } = diary(50);
    clock.wakeAt(40, note("a"));
    clock.set(30);
    await Promise.resolve();
    expect(seen).toEqual([]);
    clock.set(40);
    expect(seen).toEqual(["a@40"]);
  });

  test("hands an error to whoever moved the clock, and has moved it", () => {
    const { clock, seen, note } = diary();
    clock.wakeAt(5, () => {
      throw new Error("mine");
    });
    clock.wakeAt(6, note("a"));
    expect(() => clock.advance(10)).toThrow("mine");
    expect(clock.now()).toBe(10);
    clock.advance(0);
    expect(seen).toEqual(["a@10"]);
  });
});

describe("what a clock says", () => {
  test.each([0, -1, 1_700_000_000_000, 2 ** 53 - 1])("%d counts", (instant) => {
    expect(instantOf(() => instant)).toBe(instant);
  });

  test.each([2 ** 53, -(2 ** 53), 0.5, Number.NaN, Infinity])(
    "%d cannot be an instant",
    (instant) => {
      expect(() => instantOf(() => instant)).toThrow(
        expect.objectContaining({
          code: "OPTION_INVALID",
          details: { option: "clock" },
        }),
      );
    },
  );
});
