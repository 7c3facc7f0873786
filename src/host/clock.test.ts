import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
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

describe("waking", () => {
  const dayMs = 86_400_000;
  let now = 0;

  beforeEach(() => {
    vi.useFakeTimers();
    // Later than whatever the tests above have made this process believe.
    vi.setSystemTime(systemClock.now() + dayMs);
    now = systemClock.now();
  });
  afterEach(() => void vi.useRealTimers());

  test("happens at the instant, not before, however far away", () => {
    const run = vi.fn();
    systemClock.wakeAt(now + 60 * dayMs, run);
    vi.advanceTimersByTime(60 * dayMs - 1);
    expect(run).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(run).toHaveBeenCalledOnce();
    expect(vi.getTimerCount()).toBe(0);
  });

  test("comes soon for an instant that is over, but not at once", () => {
    const run = vi.fn();
    systemClock.wakeAt(now - 5, run);
    expect(run).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(run).toHaveBeenCalledOnce();
  });

  test("takes twice as long while the machine's clock is behind, however far it was set back", () => {
    const run = vi.fn();
    vi.setSystemTime(now - 10 * dayMs);
    systemClock.wakeAt(now + 1_000, run);
    vi.advanceTimersByTime(1_999);
    expect(run).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(run).toHaveBeenCalledOnce();
    expect(systemClock.now()).toBe(now + 1_000);
  });

  test("is in time again once the machine's clock has caught up", () => {
    const run = vi.fn();
    vi.setSystemTime(now - 100);
    systemClock.wakeAt(now + 1_000, run);
    vi.advanceTimersByTime(200);
    expect(systemClock.now()).toBe(Date.now());
    vi.advanceTimersByTime(899);
    expect(run).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(run).toHaveBeenCalledOnce();
  });

  test("does not look again and again while the machine's clock is behind", () => {
    vi.setSystemTime(now - 5_000);
    const timers = vi.spyOn(globalThis, "setTimeout");
    const run = vi.fn();
    systemClock.wakeAt(now + 1_000, run);
    vi.advanceTimersByTime(2_000);
    expect(run).toHaveBeenCalledOnce();
    expect(timers).toHaveBeenCalledOnce();
  });

  test("that began before the clock was set back is not held up by it", () => {
    const run = vi.fn();
    systemClock.wakeAt(now + 1_000, run);
    vi.advanceTimersByTime(500);
    systemClock.now();
    vi.setSystemTime(now - 5_000);
    vi.advanceTimersByTime(1_000);
    expect(run).toHaveBeenCalledOnce();
  });

  test("notices within a minute that the clock was set forward", () => {
    const run = vi.fn();
    systemClock.wakeAt(now + 10 * dayMs, run);
    vi.setSystemTime(now + 20 * dayMs);
    vi.advanceTimersByTime(60_000);
    expect(run).toHaveBeenCalledOnce();
  });

  test("can be cancelled in a later step, and leaves no timer", () => {
    const run = vi.fn();
    const cancel = systemClock.wakeAt(now + dayMs, run);
    vi.advanceTimersByTime(dayMs / 2);
    cancel();
    expect(vi.getTimerCount()).toBe(0);
    vi.advanceTimersByTime(dayMs);
    expect(run).not.toHaveBeenCalled();
  });
});
