import { join } from "node:path";
import { openHoldfast } from "../../src/open/open-holdfast.ts";
import { activity, workflow } from "../../src/runtime/definition/definitions.ts";
import { compared, inScratch } from "../scratch.ts";
import { size } from "../sizes.ts";

const children = size(10_000, 20);
const rounds = size(3, 1);

const doubled = activity("doubled", async (_, value: number) => value * 2);

const parent = workflow("parent", async (ctx, count: number) => {
  const all = await Promise.all(
    Array.from({ length: count }, (_, index) => ctx.call(doubled, index)),
  );
  return all.length;
});

/** One parent that awaits ten thousand children, against as many runs that are started and awaited by themselves. */
export function fanout(): Promise<object> {
  return inScratch(async (folder) => {
    const values: number[] = [];
    const ceilings: number[] = [];
    for (let round = 0; round < rounds; round += 1) {
      const holdfast = await openHoldfast(join(folder, `${round}.db`));
      await holdfast.work([parent, doubled], { concurrency: 1_000 });
      values.push(
        await perSecond(async () => {
          const run = await holdfast.start(parent, children);
          await run.result();
        }),
      );
      ceilings.push(
        await perSecond(async () => {
          const runs = await holdfast.startMany(
            doubled,
            Array.from({ length: children }, (_, input) => ({ input })),
          );
          await Promise.all(runs.map((run) => run.result()));
        }),
      );
      await holdfast.close();
    }
    return {
      ...compared(values, ceilings),
      unit: "children/s",
      children,
      note: "ceiling is as many runs without a parent",
    };
  });
}

async function perSecond(act: () => Promise<void>): Promise<number> {
  const startedMs = performance.now();
  await act();
  return (children * 1_000) / (performance.now() - startedMs);
}
