import { join } from "node:path";
import { openHoldfast } from "../../src/open/open-holdfast.ts";
import { workflow } from "../../src/runtime/definition/definitions.ts";
import { cpuMeter, inScratch, median, rounded } from "../scratch.ts";
import { size } from "../sizes.ts";
import { go } from "./load.ts";

const steps = size(10_000, 40);
const rounds = size(5, 1);

/** A run of ten thousand steps, then a signal: what a process that has never seen it takes to go on. */
export function replay(): Promise<object> {
  return inScratch(async (folder) => {
    const path = join(folder, "replay.db");
    let resumed: () => void = () => undefined;
    const waits = workflow("waits", async (ctx) => {
      for (let step = 0; step < steps; step += 1) await ctx.step("step", () => step);
      for (;;) {
        const value = await ctx.receive(go);
        resumed();
        if (value === 0) return;
      }
    });
    const first = await openHoldfast(path);
    await first.work([waits]);
    const begun = await first.start(waits, undefined, { id: "long" });
    while ((await begun.status()) !== "blocked")
      await new Promise((resolve) => setTimeout(resolve, 20));
    await first.close();
    const elapsed: number[] = [];
    const cpus: number[] = [];
    const held: number[] = [];
    for (let round = 1; round <= rounds; round += 1) {
      const holdfast = await openHoldfast(path);
      const went = new Promise<void>((resolve) => (resumed = resolve));
      await holdfast.get(waits, "long").signal(go, round);
      const longest = heldLoop();
      const cpu = cpuMeter();
      const startedMs = performance.now();
      await holdfast.work([waits]);
      await went;
      elapsed.push(performance.now() - startedMs);
      cpus.push(cpu());
      held.push(longest());
      await holdfast.close();
    }
    return {
      value: rounded((median(elapsed) * 1_000) / steps),
      unit: "microseconds per event of a cold history",
      events: steps,
      cpuMicrosPerEvent: rounded(median(cpus) / steps),
      loopHeldMs: rounded(median(held)),
      longestHeldMs: rounded(Math.max(...held)),
      rounds,
      note: "aim: the loop is held for at most 10 ms",
    };
  });
}

/** The longest time in which nothing else came to its turn, until asked. */
function heldLoop(): () => number {
  let longestMs = 0;
  let lastMs = performance.now();
  let isOver = false;
  const look = (): void => {
    const now = performance.now();
    longestMs = Math.max(longestMs, now - lastMs);
    lastMs = now;
    if (!isOver) setImmediate(look);
  };
  setImmediate(look);
  return () => {
    isOver = true;
    return longestMs;
  };
}
