import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { doze, keepAlive, later, monotonicMs, sleep, soon } from "./timers.ts";

const dayMs = 86_400_000;

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

describe("sleeping", () => {
  test("ends after the time, not before", async () => {
    const ended = vi.fn();
    const sleeping = sleep(1_000).then(ended);
    await vi.advanceTimersByTimeAsync(999);
    expect(ended).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1);
    await sleeping;
    expect(ended).toHaveBeenCalledOnce();
  });

  test("lasts longer than the 24 days a single timer can", async () => {
    const ended = vi.fn();
    void sleep(60 * dayMs).then(ended);
    await vi.advanceTimersByTimeAsync(60 * dayMs - 1);
    expect(ended).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1);
    expect(ended).toHaveBeenCalledOnce();
  });

  test("is given up with the signal's reason, and leaves no timer", async () => {
    const giveUp = new AbortController();
    const sleeping = sleep(1_000, giveUp.signal);
    giveUp.abort(new Error("enough"));
    await expect(sleeping).rejects.toThrow("enough");
    expect(vi.getTimerCount()).toBe(0);
  });

  test("does not begin under a signal that has aborted", async () => {
    const signal = AbortSignal.abort(new Error("too late"));
    await expect(sleep(1_000, signal)).rejects.toThrow("too late");
    expect(vi.getTimerCount()).toBe(0);
  });

  test("lets go of the signal at its end", async () => {
    const giveUp = new AbortController();
    const remove = vi.spyOn(giveUp.signal, "removeEventListener");
    const sleeping = sleep(1, giveUp.signal);
    await vi.advanceTimersByTimeAsync(1);
    await sleeping;
    expect(remove).toHaveBeenCalledOnce();
  });
});

describe("running later", () => {
  test("happens once, after the time", () => {
    const run = vi.fn();
    later(5, run);
    vi.advanceTimersByTime(4);
    expect(run).not.toHaveBeenCalled();
    vi.advanceTimersByTime(100);
    expect(run).toHaveBeenCalledOnce();
  });

  test("happens at once when its time is over, without a word of Node's", () => {
    const timers = vi.spyOn(globalThis, "setTimeout");
    const run = vi.fn();
    later(-5, run);
    vi.advanceTimersByTime(1);
    expect(run).toHaveBeenCalledOnce();
    expect(timers.mock.calls.map(([, ms]) => ms)).toEqual([0]);
  });

  test("can be cancelled, also in a later step of a long wait", () => {
    const run = vi.fn();
    const cancel = later(60 * dayMs, run);
    vi.advanceTimersByTime(30 * dayMs);
    cancel();
    vi.advanceTimersByTime(60 * dayMs);
    expect(run).not.toHaveBeenCalled();
    expect(vi.getTimerCount()).toBe(0);
  });

  test("does not keep the process alive, as sleeping does", async () => {
    vi.useRealTimers();
    const before = keepingAlive();
    const cancel = later(60_000, () => {});
    expect(keepingAlive()).toBe(before);
    const giveUp = new AbortController();
    const sleeping = sleep(60_000, giveUp.signal);
    expect(keepingAlive()).toBe(before + 1);
    cancel();
    giveUp.abort(new Error("done"));
    await expect(sleeping).rejects.toThrow("done");
  });
});

/** How many timers keep this process alive. */
function keepingAlive(): number {
  return process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;
}

describe("dozing", () => {
  test("ends after the time, or at once when the signal aborts, and leaves no timer", async () => {
    const giveUp = new AbortController();
    const ended = vi.fn();
    void doze(1_000, giveUp.signal).then(ended);
    await vi.advanceTimersByTimeAsync(999);
    expect(ended).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1);
    expect(ended).toHaveBeenCalledOnce();
    const dozing = doze(1_000, giveUp.signal);
    giveUp.abort();
    await dozing;
    await doze(1_000, giveUp.signal);
    expect(vi.getTimerCount()).toBe(0);
  });

  test("does not keep the process alive", async () => {
    vi.useRealTimers();
    const before = keepingAlive();
    const giveUp = new AbortController();
    const dozing = doze(60_000, giveUp.signal);
    expect(keepingAlive()).toBe(before);
    giveUp.abort();
    await dozing;
  });
});

describe("keeping the process alive", () => {
  test("lasts until everybody has released it, however often each does", () => {
    vi.useRealTimers();
    const before = keepingAlive();
    const first = keepAlive();
    const second = keepAlive();
    expect(keepingAlive()).toBe(before + 1);
    first();
    first();
    expect(keepingAlive()).toBe(before + 1);
    second();
    expect(keepingAlive()).toBe(before);
    const third = keepAlive();
    expect(keepingAlive()).toBe(before + 1);
    third();
    expect(keepingAlive()).toBe(before);
  });

  test("is not among the timers that a test has taken over", () => {
    const release = keepAlive();
    expect(vi.getTimerCount()).toBe(0);
    release();
  });
});

test("soon runs after what is already queued as microtasks", async () => {
  vi.useRealTimers();
  const order: string[] = [];
  const ran = new Promise<void>((resolve) => {
    soon(() => {
      order.push("soon");
      resolve();
    });
  });
  void Promise.resolve().then(() => order.push("microtask"));
  await ran;
  expect(order).toEqual(["microtask", "soon"]);
});

test("monotonic time does not go back", () => {
  vi.useRealTimers();
  const first = monotonicMs();
  expect(monotonicMs()).toBeGreaterThanOrEqual(first);
});
