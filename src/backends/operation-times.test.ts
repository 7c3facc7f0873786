import { describe, expect, test } from "vitest";
import { OperationTimes } from "./operation-times.ts";

const ours = (name: string) => ({ name, isOurs: true });
const users = (name: string) => ({ name, isOurs: false });

describe("times per operation", () => {
  test("percentiles are the durations of calls, at most an eighth too high", () => {
    const times = new OperationTimes();
    for (let n = 1; n <= 100; n += 1) times.ran(ours("append"), n, n * 100);
    const { append } = times.snapshot();
    expect(append?.count).toBe(100);
    for (const [told, is] of [
      [append?.waitingMs.p50, 50],
      [append?.waitingMs.p99, 99],
      [append?.runningMs.p50, 5_000],
      [append?.runningMs.p99, 9_900],
    ] as const) {
      expect(told).toBeGreaterThanOrEqual(is);
      expect(told).toBeLessThanOrEqual(is * 1.125);
    }
  });

  test("a few microseconds are exact, and every duration has a bucket", () => {
    const durations = [0, 0.001, 0.007, 0.008, 0.015, 0.016, 1, 60_000, 2 ** 40, Infinity, -1];
    for (const ms of durations) {
      const times = new OperationTimes();
      times.ran(ours("a"), 0, ms);
      const told = times.snapshot()["a"]?.runningMs.p99 ?? -1;
      const is = Math.min(Math.max(0, ms), (2 ** 31 - 1) / 1_000);
      expect([ms, told >= is && told <= is * 1.125 + 1e-9]).toEqual([ms, true]);
    }
  });

  test("names of users are counted together past 200, and ours keep their own", () => {
    const times = new OperationTimes();
    for (let n = 0; n < 5_000; n += 1) times.ran(users(`order ${n}`), 1, 1);
    times.ran(users("x".repeat(1_000_000)), 1, 1);
    times.ran(users("order 3"), 1, 1);
    times.ran(ours("commitTurn"), 1, 1);
    const told = times.snapshot();
    expect(Object.keys(told)).toHaveLength(202);
    expect(told["(others)"]?.count).toBe(4_801);
    expect(told["order 3"]?.count).toBe(2);
    expect(told["commitTurn"]?.count).toBe(1);
  });

  test("names of built-in object members are ordinary names", () => {
    const times = new OperationTimes();
    for (const name of ["__proto__", "constructor", "toString"]) times.ran(users(name), 1, 1);
    expect(Object.keys(times.snapshot())).toEqual(["__proto__", "constructor", "toString"]);
  });
});
