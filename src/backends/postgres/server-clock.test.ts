import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { manualClock } from "../../model/time/clock.ts";
import { ServerClock } from "./server-clock.ts";

describe("the server's clock", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  test("is measured every minute, also after a failure, until told to stop", async () => {
    const clock = new ServerClock(() => undefined);
    let measured = 0;
    clock.keepMeasuring(() => {
      measured += 1;
      return measured === 2
        ? Promise.reject(new Error("away"))
        : Promise.resolve();
    });
    await vi.advanceTimersByTimeAsync(59_999);
    expect(measured).toBe(0);
    await vi.advanceTimersByTimeAsync(1);
    expect(measured).toBe(1);
    await vi.advanceTimersByTimeAsync(120_000);
    expect(measured).toBe(3);
    clock.stopMeasuring();
    await vi.advanceTimersByTimeAsync(600_000);
    expect(measured).toBe(3);
  });

  test("never goes back, when the local clock is set back or the offset shrinks", () => {
    const local = manualClock(10_000);
    const clock = new ServerClock(() => undefined, local);
    clock.offsetMs = 500;
    expect(clock.now()).toBe(10_500);
    local.set(9_000);
    expect(clock.now()).toBe(10_500);
    local.set(10_100);
    clock.offsetMs = 0;
    expect(clock.now()).toBe(10_500);
    local.set(11_000);
    expect(clock.now()).toBe(11_000);
  });

  test("wakes by the server's time, also when it turns out to be another", () => {
    const local = manualClock(10_000);
    const clock = new ServerClock(() => undefined, local);
    clock.offsetMs = 500;
    const woken: number[] = [];
    clock.wakeAt(11_000, () => woken.push(local.now()));
    local.advance(499);
    expect(woken).toEqual([]);
    // The server is slower than it was thought to be.
    clock.offsetMs = 200;
    local.advance(300);
    expect(woken).toEqual([]);
    local.advance(1);
    expect(woken).toEqual([10_800]);
  });

  test("notices within a minute that the server is ahead, and wakes soon when the instant is over", async () => {
    const local = manualClock(10_000);
    const clock = new ServerClock(() => undefined, local);
    const woken: string[] = [];
    clock.wakeAt(1_000_000, () => woken.push(`far@${local.now()}`));
    clock.offsetMs = 2_000_000;
    local.advance(60_000);
    expect(woken).toEqual(["far@70000"]);
    clock.wakeAt(5, () => woken.push("past"));
    clock.wakeAt(5, () => woken.push("cancelled"))();
    expect(woken).toEqual(["far@70000"]);
    await Promise.resolve();
    expect(woken).toEqual(["far@70000", "past"]);
  });
});
