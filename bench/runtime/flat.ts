import { join } from "node:path";
import { openHoldfast } from "../../src/open/open-holdfast.ts";
import { workflow } from "../../src/runtime/definition/definitions.ts";
import { inScratch, median, rounded } from "../scratch.ts";
import { size } from "../sizes.ts";

const steps = size(10_000, 40);
const window = size(100, 10);
const rounds = size(5, 1);

/** The last hundred steps of a run of ten thousand, against its second hundred. */
export function flat(): Promise<object> {
  return inScratch(async (folder) => {
    const ratios: number[] = [];
    const late: number[] = [];
    for (let round = 0; round < rounds; round += 1) {
      const holdfast = await openHoldfast(join(folder, `${round}.db`));
      const times: number[] = [];
      const long = workflow("long", async (ctx) => {
        for (let step = 0; step < steps; step += 1)
          await ctx.step("step", () => {
            times.push(performance.now());
            return step;
          });
      });
      await holdfast.work([long]);
      const run = await holdfast.start(long);
      await run.result();
      await holdfast.close();
      // The middle of single steps: a checkpoint in one of the windows is not what is asked about.
      const middleOf = (from: number): number =>
        median(
          times
            .slice(from, from + window)
            .map((time, index) => time - (times[from + index - 1] ?? time)),
        );
      const lateMs = middleOf(steps - window);
      late.push(lateMs * 1_000);
      ratios.push(lateMs / middleOf(window));
    }
    return {
      value: rounded(median(late)),
      unit: `microseconds per step, the last ${window} of ${steps}`,
      ratio: rounded(median(ratios)),
      rounds,
      note: `ratio is to steps ${window} to ${2 * window} of the same run; aim at most 1.2`,
    };
  });
}
