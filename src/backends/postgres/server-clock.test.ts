import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { monotonicMs } from "../../host/timers.ts";
import type { Warning } from "../../sql/database.ts";
import { ServerClock } from "./server-clock.ts";

const hourMs = 3_600_000;
const startAt = 1_800_000_000_000;

/**
 * A server whose time follows the machine's monotonic clock, independent of its wall clock.
 */
class Server {
  readonly #startMs = monotonicMs();
  at = startAt;

  now(): number {
    return this.at + monotonicMs() - this.#startMs;
  }

  query(): Promise<{ readonly rows: readonly object[]; count: number }> {
    return Promise.resolve({ rows: [{ at: this.now() }], count: 1 });
  }
}

async function measured(): Promise<{
  readonly clock: ServerClock;
  readonly server: Server;
  readonly warnings: readonly Warning[];
}> {
  const warnings: Warning[] = [];
  const clock = new ServerClock((warning) => warnings.push(warning));
  const server = new Server();
  await clock.measure(server);
  return { clock, server, warnings };
}

/** Sets only the machine's wall clock: its monotonic clock and timers continue. */
function setWallClock(instant: number): void {
  vi.setSystemTime(instant);
}

describe("the server's clock", () => {
  beforeEach(() => void vi.useFakeTimers({ now: startAt }));
  afterEach(() => void vi.useRealTimers());

  test("is measured every minute, also after a failure, until told to stop", async () => {
    const clock = new ServerClock(() => undefined);
    let count = 0;
    clock.keepMeasuring(() => {
      count += 1;
      return count === 2 ? Promise.reject(new Error("away")) : Promise.resolve();
    });
    await vi.advanceTimersByTimeAsync(59_999);
    expect(count).toBe(0);
    await vi.advanceTimersByTimeAsync(1);
    expect(count).toBe(1);
    await vi.advanceTimersByTimeAsync(120_000);
    expect(count).toBe(3);
    clock.stopMeasuring();
    await vi.advanceTimersByTimeAsync(600_000);
    expect(count).toBe(3);
  });

  test("never goes back when the server's does; it stands still", async () => {
    const { clock, server } = await measured();
    expect(clock.now()).toBe(startAt);
    server.at -= 500;
    await clock.measure(server);
    expect(clock.now()).toBe(startAt);
    vi.advanceTimersByTime(500);
    expect(clock.now()).toBe(startAt);
    vi.advanceTimersByTime(1);
    expect(clock.now()).toBe(startAt + 1);
  });

  test("continues, and wakes in time, when the machine's clock is set back or forward", async () => {
    const { clock } = await measured();
    const woken: number[] = [];
    clock.wakeAt(startAt + 2_000, () => woken.push(clock.now()));
    setWallClock(startAt - hourMs);
    vi.advanceTimersByTime(1_000);
    expect(clock.now()).toBe(startAt + 1_000);
    clock.wakeAt(startAt + 3_000, () => woken.push(clock.now()));
    setWallClock(startAt + hourMs);
    expect(clock.now()).toBe(startAt + 1_000);
    vi.advanceTimersByTime(2_000);
    expect(woken).toEqual([startAt + 2_000, startAt + 3_000]);
  });

  test("wakes by the server's time, also when it turns out to be another", async () => {
    const { clock, server } = await measured();
    const woken: number[] = [];
    clock.wakeAt(startAt + 500, () => woken.push(clock.now()));
    vi.advanceTimersByTime(499);
    // The server is slower than assumed.
    server.at -= 300;
    await clock.measure(server);
    vi.advanceTimersByTime(300);
    expect(woken).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(woken).toEqual([startAt + 500]);
  });

  test("notices within a minute that the server is ahead, and wakes soon when the instant is over", async () => {
    const { clock, server } = await measured();
    const woken: string[] = [];
    clock.wakeAt(startAt + 2 * hourMs, () => woken.push("far"));
    server.at += 3 * hourMs;
    await clock.measure(server);
    vi.advanceTimersByTime(60_000);
    expect(woken).toEqual(["far"]);
    clock.wakeAt(5, () => woken.push("past"));
    clock.wakeAt(5, () => woken.push("cancelled"))();
    expect(woken).toEqual(["far"]);
    vi.advanceTimersByTime(1);
    expect(woken).toEqual(["far", "past"]);
  });

  test("continues when a test replaces the machine's timers", async () => {
    vi.useRealTimers();
    const { clock } = await measured();
    const before = clock.now();
    // The new timers count from 0 again.
    vi.useFakeTimers({ now: startAt });
    clock.now();
    vi.advanceTimersByTime(5_000);
    expect(clock.now()).toBeGreaterThanOrEqual(before + 5_000);
  });
});

describe("the difference between the machine's clock and the server's", () => {
  beforeEach(() => void vi.useFakeTimers({ now: startAt }));
  afterEach(() => void vi.useRealTimers());

  test("follows the machine's clock, and causes one warning", async () => {
    const { clock, server, warnings } = await measured();
    expect(clock.offsetMs).toBe(0);
    setWallClock(startAt - hourMs);
    expect(clock.offsetMs).toBe(hourMs);
    await clock.measure(server);
    await clock.measure(server);
    expect(warnings.map(({ code }) => code)).toEqual(["CLOCK_SKEW"]);
    expect(warnings[0]?.message).toContain("differ by 3600000 ms");
  });

  test("causes no warning once a clock that was ahead has been set right", async () => {
    setWallClock(startAt + hourMs);
    const warnings: Warning[] = [];
    const clock = new ServerClock((warning) => warnings.push(warning));
    clock.now();
    setWallClock(startAt);
    await clock.measure(new Server());
    expect(clock.now()).toBe(startAt + hourMs);
    expect(warnings).toEqual([]);
    expect(clock.offsetMs).toBe(0);
  });

  test("is measured at once when it jumps: the machine may have been suspended", async () => {
    const { clock, server } = await measured();
    let count = 0;
    clock.keepMeasuring(() => {
      count += 1;
      return count === 1
        ? Promise.reject(new Error("the connection was lost"))
        : clock.measure(server);
    });
    // Suspended for an hour: nothing was counted, and no timer has fired.
    server.at += hourMs;
    setWallClock(startAt + hourMs);
    expect(clock.now()).toBe(startAt);
    await vi.advanceTimersByTimeAsync(0);
    expect(count).toBe(1);
    clock.now();
    await vi.advanceTimersByTimeAsync(999);
    expect(count).toBe(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(count).toBe(2);
    expect(clock.now()).toBe(startAt + hourMs + 1_000);
    await vi.advanceTimersByTimeAsync(59_999);
    expect(count).toBe(2);
    await vi.advanceTimersByTimeAsync(1);
    expect(count).toBe(3);
    clock.stopMeasuring();
    setWallClock(startAt);
    clock.now();
    await vi.advanceTimersByTimeAsync(600_000);
    expect(count).toBe(3);
  });
});
