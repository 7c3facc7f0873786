import { appendFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { holdfastOn } from "../../src/open/open-holdfast.ts";
import { workflow } from "../../src/runtime/definition/definitions.ts";
import { isHoldfastError } from "../../src/model/errors.ts";
import type { Database } from "../../src/kernel.ts";
import { leaseOn, openTold } from "./told-database.ts";

/**
 * Runs workflows of ten steps until it is killed. Each step writes a line to a
 * file outside the database before it is recorded, `<run> <step>`, and another
 * when its code is given the outcome, `<run> <step> recorded`. A run of
 * `guilty` kills its process.
 */
const [place = "", effects = "", pauseMs = "", concurrency = "20"] = process.argv.slice(2);

const tenSteps = workflow("ten-steps", async (ctx, start: number) => {
  let sum = start;
  const { id } = ctx;
  for (let step = 0; step < 10; step += 1) {
    sum += await ctx.step(`step ${step}`, async () => {
      appendFileSync(effects, `${id} ${step}\n`);
      if (step % 3 === 0) await sleep(Number(pauseMs));
      return step;
    });
    appendFileSync(effects, `${id} ${step} recorded\n`);
    if (step === 4) await ctx.sleep(5);
  }
  return sum;
});

const guilty = workflow("guilty", async (ctx) =>
  ctx.step("kill", () => {
    process.kill(process.pid, "SIGKILL");
    return new Promise(() => undefined);
  }),
);

const holdfast = await holdfastOn(await opened());
await holdfast.work([tenSteps, guilty], {
  concurrency: Number(concurrency),
  lease: leaseOn(place, "4s"),
});
console.log("ready");

/** A server that was crashed does not take anybody for a moment. */
async function opened(): Promise<Database> {
  for (;;)
    try {
      return await openTold(place);
    } catch (error) {
      if (!isHoldfastError(error) || !error.retryable) throw error;
      await sleep(50);
    }
}
