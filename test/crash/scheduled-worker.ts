import { appendFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { manualClock } from "../../src/model/time/clock.ts";
import { holdfastOn } from "../../src/open/open-holdfast.ts";
import { workflow } from "../../src/runtime/definition/definitions.ts";
import { schedule } from "../../src/runtime/schedules/schedule.ts";
import { openTold } from "./told-database.ts";

/**
 * A worker with a schedule for each way to overlap, on a clock which is set by
 * the lines it reads; says who it is, and when nothing is left to be done at that time. Each
 * step of a run writes the run's id to a file before it is recorded. `end`
 * ends it.
 */
const [place = "", effects = "", start = "0"] = process.argv.slice(2);

const job = workflow("job", async (ctx) => {
  const { id } = ctx;
  for (const step of ["begin", "end"])
    await ctx.step(step, () => appendFileSync(effects, `${id}\n`));
});
const schedules = (["skip", "queue", "allow", "cancelPrevious"] as const).map((overlap) =>
  schedule(
    overlap,
    {
      cron: "30 2 * * *",
      timeZone: "Europe/Berlin",
      catchUp: "all",
      overlap,
    },
    job,
  ),
);

const clock = manualClock(Number(start));
const holdfast = await holdfastOn(await openTold(place, { clock }));
// However the clock is set, only who has died loses what it holds.
await holdfast.work([job, ...schedules], { lease: "90 days" });
process.stdout.write(`${holdfast.database.owner}\n`);
for await (const line of createInterface({ input: process.stdin })) {
  if (line === "end") break;
  clock.set(Number(line));
  while (!(await isDone())) {
    await new Promise((go) => setTimeout(go, 20));
    // A run whose worker died before anything was recorded pauses for some milliseconds.
    clock.advance(20);
    // A Postgres server may notice the death of a process after its successor has asked.
    await holdfast.executions.releaseDead();
  }
  process.stdout.write(`done ${line}\n`);
}
await holdfast.close();
process.exit(0);

async function isDone(): Promise<boolean> {
  const { items } = await holdfast.schedules.list();
  const runs = await holdfast.runs.list({ function: "job", limit: 1_000 });
  return (
    items.every(({ next: [next = Infinity], waiting }) => next > clock.now() && waiting === 0) &&
    runs.items.every(({ state }) => state.pending.kind === "finished")
  );
}
