import { expect, test } from "vitest";
import { HoldfastError } from "../model/errors.ts";
import { RunningBodies } from "../runtime/running-bodies.ts";
import { TestClock } from "./test-clock.ts";
import { TimeSkipping } from "./time-skipping.ts";
import { Traffic } from "./traffic.ts";

test("beside a run that polls forever, a run that waits for no instant is stuck, and a long sleep is not", async () => {
  const clock = new TestClock(0);
  const timers = clock.timers("process");
  const poll = (): void => void timers.wakeAt(clock.now() + 1, poll);
  poll();
  const skipping = new TimeSkipping({
    clock,
    traffic: new Traffic(),
    running: () => ({
      drain: { isBusy: false },
      bodies: new RunningBodies(),
      end: new Promise(() => undefined),
    }),
    versionOf: () => Promise.resolve(3),
    waitsForTime: (id) => Promise.resolve(id === "nap"),
    whyStuck: (id) => Promise.resolve(new HoldfastError("RUN_STUCK", "", { id })),
    endless: (id) => new HoldfastError("RUN_STUCK", "", { id }),
  });
  const nap = skipping.during("nap", () => {
    return new Promise<string>((resolve) => {
      timers.wakeAt(5_000, () => resolve("rested"));
    });
  });
  const ask = skipping.during("ask", () => new Promise(() => undefined));
  await expect(ask).rejects.toMatchObject({ details: { id: "ask" } });
  expect(clock.now()).toBeLessThan(2_100);
  expect(await nap).toBe("rested");
  timers.cancelAll();
});

test("a run that never ends is awaited for 10,000 instants and no longer", async () => {
  const clock = new TestClock(0);
  const timers = clock.timers("process");
  let version = 0;
  const poll = (): void => {
    version += 1;
    timers.wakeAt(clock.now() + 1, poll);
  };
  poll();
  const skipping = new TimeSkipping({
    clock,
    traffic: new Traffic(),
    running: () => ({
      drain: { isBusy: false },
      bodies: new RunningBodies(),
      end: new Promise(() => undefined),
    }),
    versionOf: () => Promise.resolve(version),
    waitsForTime: () => Promise.resolve(true),
    whyStuck: (id) => Promise.resolve(new HoldfastError("RUN_STUCK", "", { id })),
    endless: (id, instants) => new HoldfastError("RUN_STUCK", "", { id, instants }),
  });
  const polling = skipping.during("poll", () => new Promise(() => undefined));
  await expect(polling).rejects.toMatchObject({
    code: "RUN_STUCK",
    details: { id: "poll", instants: 10_000 },
  });
  expect(clock.now()).toBeLessThan(10_010);
  timers.cancelAll();
});

test("nothing is idle while a run has code left to execute, after any number of event loop rounds", async () => {
  const clock = new TestClock(0);
  const drain = { isBusy: true };
  const skipping = new TimeSkipping({
    clock,
    traffic: new Traffic(),
    running: () => ({
      drain,
      bodies: new RunningBodies(),
      end: new Promise(() => undefined),
    }),
    versionOf: () => Promise.resolve(0),
    waitsForTime: () => Promise.resolve(true),
    whyStuck: (id) => Promise.resolve(new HoldfastError("RUN_STUCK", "", { id })),
    endless: (id) => new HoldfastError("RUN_STUCK", "", { id }),
  });
  let rests = 0;
  const idle = skipping.idle().then(() => (rests += 1));
  const moved = skipping.moveTo(5).then(() => (rests += 1));
  for (let round = 0; round < 50; round += 1) await new Promise((resolve) => setImmediate(resolve));
  expect(rests).toBe(0);
  expect(clock.now()).toBe(0);
  drain.isBusy = false;
  await Promise.all([idle, moved]);
  expect(clock.now()).toBe(5);
});
