import { openHoldfast, signal, workflow } from "holdfast";

const stop = signal("stop");
const readings = [3, 4, 4, 7, 7, 7];

interface Seen {
  readonly last: number;
  readonly changes: number;
}

// Runs for years. Each pass starts under the same id with an empty history,
// and gets the state of the pass before it as its input.
const watch = workflow("meter/watch", async (ctx, seen: Seen) => {
  let { last, changes } = seen;
  for (let count = 0; count < 2; count += 1) {
    const value = await ctx.step("read", () => readings.shift() ?? last);
    if (value !== last) changes += 1;
    last = value;
    if ((await ctx.receive(stop, { timeout: "5ms" })) !== undefined) return { last, changes };
    ctx.setProgress({ last, changes });
  }
  return ctx.continueWith({ last, changes });
});

const holdfast = await openHoldfast(":memory:");
await holdfast.work([watch]);
const run = await holdfast.start(watch, { last: 0, changes: 0 });
while (readings.length > 0) await new Promise((resolve) => setTimeout(resolve, 5));
await run.signal(stop);
console.log(await run.result());
await holdfast.close();

// Output:
// { last: 7, changes: 3 }
