import { appendFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { openHoldfast } from "../../src/open/open-holdfast.ts";
import { workflow } from "../../src/runtime/definitions.ts";

/**
 * Runs workflows of ten steps until it is killed. Each step writes a line to a
 * file outside the database before it is recorded: `<run> <step>`.
 */
const [place = "", effects = "", options = "{}"] = process.argv.slice(2);

export const stepsPerRun = 10;

const tenSteps = workflow("ten-steps", async (ctx, start: number) => {
  let sum = start;
  const { id } = ctx;
  for (let step = 0; step < stepsPerRun; step += 1) {
    sum += await ctx.step(`step ${step}`, async () => {
      appendFileSync(effects, `${id} ${step}\n`);
      if (step % 3 === 0) await sleep(1);
      return step;
    });
    if (step === 4) await ctx.sleep(5);
  }
  return sum;
});

const holdfast = await openHoldfast(place, JSON.parse(options) as object);
await holdfast.work([tenSteps], { concurrency: 20, lease: "2s" });
console.log("ready");
