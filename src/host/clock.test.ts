import { afterEach, expect, test, vi } from "vitest";
import { systemClock } from "./clock.ts";

afterEach(() => {
  vi.restoreAllMocks();
});

test("the system clock never goes back", () => {
  const start = Date.now() + 10_000;
  const machine = vi.spyOn(Date, "now");
  const seen = [start, start - 5_000, start + 1].map((instant) => {
    machine.mockReturnValue(instant);
    return systemClock.now();
  });
  expect(seen).toEqual([start, start, start + 1]);
});
