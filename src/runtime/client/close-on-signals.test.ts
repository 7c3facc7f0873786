import { afterEach, expect, test, vi } from "vitest";
import { closeOnSignals } from "./close-on-signals.ts";

afterEach(() => {
  vi.restoreAllMocks();
});

test("a signal closes once, and then ends the process as it would have", async () => {
  const kill = vi.spyOn(process, "kill").mockReturnValue(true);
  const close = vi.fn(() => Promise.resolve());
  const before = process.listenerCount("SIGUSR2");
  closeOnSignals(["SIGUSR2", "SIGWINCH"], close, () => undefined);
  expect(process.listenerCount("SIGUSR2")).toBe(before + 1);
  process.emit("SIGUSR2");
  await vi.waitFor(() => expect(kill).toHaveBeenCalled());
  expect(kill.mock.calls).toEqual([[process.pid, "SIGUSR2"]]);
  expect(close).toHaveBeenCalledOnce();
  expect(process.listenerCount("SIGUSR2")).toBe(before);
});

test("a close that fails is told of, and ends the process too", async () => {
  const kill = vi.spyOn(process, "kill").mockReturnValue(true);
  const tell = vi.fn();
  const failure = new Error("no");
  closeOnSignals(["SIGUSR2"], () => Promise.reject(failure), tell);
  process.emit("SIGUSR2");
  await vi.waitFor(() => expect(kill).toHaveBeenCalled());
  expect(tell).toHaveBeenCalledWith(failure);
});

test("undone, it hears nothing", () => {
  const before = process.listenerCount("SIGUSR2");
  const undo = closeOnSignals(
    ["SIGUSR2"],
    () => Promise.resolve(),
    () => undefined,
  );
  undo();
  expect(process.listenerCount("SIGUSR2")).toBe(before);
});
