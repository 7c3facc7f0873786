import { appendFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { holdfastOn } from "../../src/open/open-holdfast.ts";
import { activity, workflow } from "../../src/runtime/definition/definitions.ts";
import { leaseOn, openTold } from "./told-database.ts";

/**
 * Works until it is killed, mostly by a run of its own: `killer` and
 * `kill-attempt` end the process, `stumbling` does so after each step that it
 * has recorded. `innocent` and `plain` do no harm. Each step that began is a
 * line of the effects file.
 */
const [place = "", effects = "", stepMs = "0", concurrency = "100"] = process.argv.slice(2);

function began(id: string, step: string): void {
  appendFileSync(effects, `${id} ${step}\n`);
}

function die(): Promise<never> {
  process.kill(process.pid, "SIGKILL");
  return new Promise(() => undefined);
}

const plain = activity("plain", async (_, n: number) => {
  await sleep(Number(stepMs));
  return n;
});

const innocent = workflow("innocent", async (ctx, n: number) => {
  const { id } = ctx;
  await ctx.step("slow", async () => {
    began(id, "slow");
    await sleep(Number(stepMs));
  });
  return ctx.call(plain, n);
});

/** Kills its process so long after it began. */
const killer = workflow("killer", async (ctx, afterMs: number) => {
  const { id } = ctx;
  await ctx.step("kill", async () => {
    began(id, "kill");
    await sleep(afterMs);
    return die();
  });
});

const killAttempt = activity("kill-attempt", async ({ id }, afterMs: number) => {
  began(id, "kill");
  await sleep(afterMs);
  await die();
});

const calling = workflow("calling", async (ctx, afterMs: number) => ctx.call(killAttempt, afterMs));

/** Records a step, and kills the process that recorded it, again and again. */
const stumbling = workflow("stumbling", async (ctx, steps: number) => {
  const { id } = ctx;
  const mine = process.pid;
  for (let step = 0; step < steps; step += 1) {
    const by = await ctx.step(`step ${step}`, () => {
      began(id, `step ${step}`);
      return process.pid;
    });
    if (by === mine) await die();
  }
  return steps;
});

const holdfast = await holdfastOn(await openTold(place));
await holdfast.work([innocent, plain, killer, killAttempt, calling, stumbling], {
  concurrency: Number(concurrency),
  lease: leaseOn(place, "2s"),
});
process.on("SIGTERM", () => {
  console.log("closing");
  void holdfast.close().then(() => process.exit(0));
});
console.log("ready");
