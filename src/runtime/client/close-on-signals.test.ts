import { afterEach, expect, test, vi } from "vitest";
import { manualClock } from "../../model/time/clock.ts";
import { closeOnSignals, isHeardByApp } from "./close-on-signals.ts";

const clock = manualClock(1_000);

afterEach(() => {
  vi.restoreAllMocks();
});

test("a signal closes once, and then ends the process as it would have", async () => {
  const kill = vi.spyOn(process, "kill").mockReturnValue(true);
  const close = vi.fn(() => Promise.resolve());
  const before = process.listenerCount("SIGUSR2");
  closeOnSignals(["SIGUSR2", "SIGWINCH"], { close, tell: () => undefined, clock });
  expect(process.listenerCount("SIGUSR2")).toBe(before + 1);
  process.emit("SIGUSR2");
  await vi.waitFor(() => expect(kill).toHaveBeenCalled());
  expect(kill.mock.calls).toEqual([[process.pid, "SIGUSR2"]]);
  expect(close).toHaveBeenCalledOnce();
  expect(process.listenerCount("SIGUSR2")).toBe(before);
});

test("a signal that comes again within 300 ms is the same one, and a later one is left to Node", async () => {
  const kill = vi.spyOn(process, "kill").mockReturnValue(true);
  let closed = (): void => undefined;
  const close = vi.fn(() => new Promise<void>((resolve) => (closed = resolve)));
  const before = process.listenerCount("SIGUSR2");
  closeOnSignals(["SIGUSR2"], { close, tell: () => undefined, clock });
  process.emit("SIGUSR2");
  clock.advance(299);
  process.emit("SIGUSR2");
  expect(process.listenerCount("SIGUSR2")).toBe(before + 1);
  expect(isHeardByApp("SIGUSR2")).toBe(false);
  clock.advance(1);
  expect(process.listenerCount("SIGUSR2")).toBe(before);
  expect(kill).not.toHaveBeenCalled();
  closed();
  await vi.waitFor(() => expect(kill).toHaveBeenCalledOnce());
  expect(close).toHaveBeenCalledOnce();
});

test("a close that fails is told of, and ends the process too", async () => {
  const kill = vi.spyOn(process, "kill").mockReturnValue(true);
  const tell = vi.fn();
  const failure = new Error("no");
  closeOnSignals(["SIGUSR2"], { close: () => Promise.reject(failure), tell, clock });
  process.emit("SIGUSR2");
  await vi.waitFor(() => expect(kill).toHaveBeenCalled());
  expect(tell).toHaveBeenCalledWith(failure);
});

test("undone, it hears nothing", () => {
  const before = process.listenerCount("SIGUSR2");
  const undo = closeOnSignals(["SIGUSR2"], {
    close: () => Promise.resolve(),
    tell: () => undefined,
    clock,
  });
  undo();
  expect(process.listenerCount("SIGUSR2")).toBe(before);
});
